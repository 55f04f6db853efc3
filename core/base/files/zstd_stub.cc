// Compiled instead of zstd.cc where there is no libzstd.
#include "core/base/check.h"
#include "core/base/files/zstd.h"

namespace lockstep {

bool has_zstd() { return false; }

ByteSource zstd_unpacked(ByteSource, std::string origin) {
  throw DataError(
      fmt::format("[data] {}: this build of Lockstep reads no Zstandard. Decompress the file (zstd "
                  "-d), or build again with the package libzstd-dev.",
                  origin));
}

}  // namespace lockstep
