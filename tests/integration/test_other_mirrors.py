"""A hub is migrated flow by flow: the real MirrorMaker 2 goes on copying M to B while Heliograph copies A to B."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusters import ClusterFactory
from tests.support.flows import InProcessFlow
from tests.support.heliograph_run import write_properties
from tests.support.mirror import command, run_to_the_end
from tests.support.mirrormaker import QUICK_GROUPS, Worker, mirrormaker_lines, wait_until_forgotten
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.writers import samples, write


def test_a_mirror_maker_of_another_flow_is_no_obstacle_and_one_of_this_flow_is_refused(
    new_cluster: ClusterFactory, tmp_path: Path
) -> None:
    here, hub, there = (
        new_cluster("A").bootstrap,
        new_cluster("M").bootstrap,
        new_cluster("B", config=QUICK_GROUPS).bootstrap,
    )
    ours = InProcessFlow("A", "B", here, there, {"A->B.topics": "t"})
    theirs = InProcessFlow("M", "B", hub, there, {"M->B.topics": "t"} | mirrormaker_lines("M", "B"))
    file = write_properties(tmp_path / "ours.properties", ours.file())
    for bootstrap in (here, hub):
        create_topic(bootstrap, "t", 2)
        write(bootstrap, "t", samples(300, partitions=2))

    both = ours.file() | theirs.file() | {"clusters": "A, B, M", "M->A.enabled": "false", "A->M.enabled": "false"}
    with Worker(tmp_path, both) as worker:
        wait_until(lambda: ours.copied("t") == theirs.copied("t") == 300, f"it copies both flows ({worker.log})")
        refused = command("run", str(file), "--until-caught-up")
        sentence = "(group 'A-mm2') copies it (connector 'MirrorSourceConnector'): stop it first"
        assert (refused.code, sentence in refused.err) == (1, True), refused.err
        worker.stop()
    wait_until_forgotten(there, "A-mm2")

    with Worker(tmp_path, theirs.file()) as worker:
        for bootstrap in (here, hub):
            write(bootstrap, "t", samples(200, partitions=2, seed=2))
        wait_until(lambda: theirs.copied("t") == 500, f"MirrorMaker 2 carries on with M->B ({worker.log})")
        checked = command("check", str(file))
        assert "PASS  A->B: MirrorMaker 2: none carries this flow on cluster B" in checked.out, checked.out
        run_to_the_end(file)
        assert ours.assert_exact("t", "Heliograph") == 500
        write(hub, "t", samples(100, partitions=2, seed=3))
        wait_until(lambda: theirs.copied("t") == 600, f"MirrorMaker 2 is not disturbed ({worker.log})")
        assert theirs.assert_exact("t", "MirrorMaker 2") == 600
