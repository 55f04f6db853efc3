#include "core/base/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "core/base/check.h"

namespace lockstep {
namespace {

/// Owns inflate's state.
class Inflater {
 public:
  Inflater() {
    constexpr int kGzipFormat = 15 + 16;  // largest window, gzip header and trailer
    LS_CHECK(inflateInit2(&stream, kGzipFormat) == Z_OK, OutOfMemoryError,
             "[gzip] zlib could not allocate its work memory.");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  // zlib counts in 32 bits.
  constexpr size_t kPiece = 1 << 30;
  constexpr size_t kLeastRoom = 1 << 16;
  std::vector<std::byte> unpacked;
  size_t used = 0;
  Inflater inflater;
  z_stream& stream = inflater.stream;
  while (!bytes.empty()) {
    LS_CHECK(is_gzip(bytes), DataError,
             "[data] {}: what follows the compressed data is not gzip's. Is the file damaged?",
             path.string());
    for (int status = Z_OK; status != Z_STREAM_END;) {
      if (unpacked.size() - used < kLeastRoom) {
        unpacked.resize(std::max(2 * unpacked.size(), kLeastRoom));
      }
      const size_t in = std::min(bytes.size(), kPiece);
      const size_t room = std::min(unpacked.size() - used, kPiece);
      stream.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
      stream.avail_in = static_cast<unsigned>(in);
      stream.next_out = reinterpret_cast<unsigned char*>(unpacked.data() + used);
      stream.avail_out = static_cast<unsigned>(room);
      status = inflate(&stream, Z_NO_FLUSH);
      bytes = bytes.subspan(in - stream.avail_in);
      used += room - stream.avail_out;
      LS_CHECK(status != Z_MEM_ERROR, OutOfMemoryError,
               "[gzip] zlib could not allocate its work memory.");
      LS_CHECK(status == Z_OK || status == Z_STREAM_END, DataError,
               "[data] {}: the compressed data is {}. Fetch or make the file again.", path.string(),
               status == Z_BUF_ERROR ? "cut off" : "damaged");
    }
    inflateReset(&stream);
  }
  unpacked.resize(used);
  return unpacked;
}

}  // namespace lockstep
