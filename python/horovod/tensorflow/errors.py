"""What errors of operations in TensorFlow mean to Horovod."""

import re
from typing import Optional

from horovod.common.exceptions import HorovodInternalError, HorovodRequestError, register_translation
from horovod.tensorflow._library import tf

_KINDS = {"HorovodInternalError": HorovodInternalError, "HorovodRequestError": HorovodRequestError}
# In the middle of what TensorFlow says of the operation.
_OURS = re.compile(r"(HorovodInternalError|HorovodRequestError): ([^\n]*?)(?: \[Op:|\n|$)")


def _translated(error: BaseException) -> Optional[HorovodInternalError]:
    if not isinstance(error, tf.errors.OpError):
        return None
    found = _OURS.search(error.message)
    # XLA has one code for all errors.
    code = None if isinstance(error, tf.errors.InternalError) else error.error_code
    return _KINDS[found[1]](found[2], code=code) if found else None


register_translation(_translated)
