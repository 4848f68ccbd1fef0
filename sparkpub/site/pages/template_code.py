"""Where our templates lie, and their code as Jinja compiled it."""

from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache

SHIPPED = Path(__file__).parent / "templates"


class KeptCode(BytecodeCache):
    """Compiled templates in memory, for who builds again and again. One whose source changed is compiled anew."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        known = self._code.get(bucket.key)
        if known is not None:
            bucket.bytecode_from_string(known)  # refused by the digest of its source

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.bytecode_to_string()
