#pragma once

#include <string>

#include "core/base/files/gzip.h"

namespace lockstep {

/// Whether the library was built with libzstd.
bool has_zstd();

/// The bytes of `packed`, one or more frames of Zstandard, decompressed a piece at a time. Reading
/// throws DataError naming `origin` if the data is damaged or truncated; the call itself does if
/// has_zstd() is false.
ByteSource zstd_unpacked(ByteSource packed, std::string origin);

}  // namespace lockstep
