"""Messages of magic 0 and 1 are read as kafka-python and aiokafka read them."""

from __future__ import annotations

import struct
import zlib

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch as AiokafkaBatch
from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

from heliograph.errors import HeliographError
from heliograph.wire.legacy import legacy_crc_is_valid, read_messages
from heliograph.wire.record_batch import walk
from tests.unit.wire.batches import NOW


def write(magic: int, codec: int) -> bytearray:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for i in range(4):
        builder.append(i, NOW + i, None if i == 1 else b"key%d" % i, None if i == 2 else b"value%d" % i)
    return bytearray(builder.build())


@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (0, 1), (1, 0), (1, 1), (1, 3)])
def test_messages_agree_with_two_other_implementations(magic: int, codec: int) -> None:
    raw = write(magic, codec)
    if codec and magic:
        struct.pack_into(">q", raw, 0, 1003)
    for at, header in walk(raw, 0, len(raw)):
        message = bytes(raw[at : at + header.size])
        assert legacy_crc_is_valid(message, header)
        ours = [(m.offset, m.timestamp, m.key, m.value) for m in read_messages(message, header)]
        for other in (LegacyRecordBatch(message, magic), AiokafkaBatch(message, magic)):
            theirs = [(r.offset, -1 if r.timestamp is None else r.timestamp, r.key, r.value) for r in other]
            assert ours == theirs


def test_append_time_of_a_compressed_message_holds_for_all_inside() -> None:
    raw = write(1, 1)
    raw[17] |= 0x08
    struct.pack_into(">q", raw, 18, NOW + 99)
    struct.pack_into(">I", raw, 12, zlib.crc32(raw[16:]))
    [(_, header)] = walk(raw, 0, len(raw))
    assert legacy_crc_is_valid(raw, header)
    assert {message.timestamp for message in read_messages(raw, header)} == {NOW + 99}


def test_message_whose_content_cannot_be_decompressed_is_refused() -> None:
    raw = write(1, 0)
    raw[17] = 1
    [(_, header), *_] = walk(raw, 0, len(raw))
    with pytest.raises(HeliographError, match="gzip data"):
        list(read_messages(raw, header))
