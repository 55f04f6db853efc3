#include "core/base/files/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace lockstep {
namespace {

/// Size of the pieces that are read; zlib's own tools use a quarter of it.
constexpr size_t kInputBytes = size_t{64} << 10;

class Gunzip {
 public:
  Gunzip(ByteSource packed, std::string origin)
      : packed_(std::move(packed)), origin_(std::move(origin)) {
    refill();
    is_gzip_ = starts_member();
    constexpr int kGzipFormat = 15 + 16;  // largest window, gzip header and trailer
    LS_CHECK(inflateInit2(&stream_, kGzipFormat) == Z_OK, OutOfMemoryError,
             "[gzip] zlib could not allocate its work memory.");
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  size_t read(std::span<std::byte> into) {
    size_t filled = 0;
    while (filled < into.size()) {
      const size_t got = is_gzip_ ? unpack(into.subspan(filled)) : copy_plain(into.subspan(filled));
      if (got == 0) break;
      filled += got;
    }
    return filled;
  }

 private:
  /// Moves the bytes that are left to the front and reads more behind them.
  void refill() {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= std::exchange(begin_, 0);
    const size_t wanted = buffer_.size() - end_;
    const size_t got = packed_(std::span(buffer_).subspan(end_));
    end_ += got;
    at_end_ = got < wanted;
  }
  bool starts_member() const {
    return end_ - begin_ >= 2 && buffer_[begin_] == std::byte{0x1f} &&
           buffer_[begin_ + 1] == std::byte{0x8b};
  }

  size_t copy_plain(std::span<std::byte> into) {
    if (begin_ == end_ && !at_end_) refill();
    const size_t count = std::min(into.size(), end_ - begin_);
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), count, into.begin());
    begin_ += count;
    return count;
  }

  /// Returns at least one byte, or 0 at the end of the last member.
  size_t unpack(std::span<std::byte> into) {
    into = into.first(std::min<size_t>(into.size(), std::numeric_limits<int>::max()));
    while (true) {
      if (end_ - begin_ < 2 && !at_end_) refill();
      if (between_members_) {
        if (begin_ == end_) return 0;
        LS_CHECK(starts_member(), DataError,
                 "[data] {}: what follows the compressed data is not gzip's. Is the file damaged?",
                 origin_);
        between_members_ = false;
      }
      stream_.next_in = reinterpret_cast<unsigned char*>(buffer_.data() + begin_);
      stream_.avail_in = static_cast<unsigned>(end_ - begin_);
      stream_.next_out = reinterpret_cast<unsigned char*>(into.data());
      stream_.avail_out = static_cast<unsigned>(into.size());
      const bool no_input = begin_ == end_;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      begin_ = end_ - stream_.avail_in;
      const size_t got = into.size() - stream_.avail_out;
      LS_CHECK(status != Z_MEM_ERROR, OutOfMemoryError,
               "[gzip] zlib could not allocate its work memory.");
      LS_CHECK(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR, DataError,
               "[data] {}: the compressed data is damaged. Fetch or make the file again.", origin_);
      if (status == Z_STREAM_END) {
        inflateReset(&stream_);
        between_members_ = true;
      }
      if (got > 0) return got;
      LS_CHECK(between_members_ || !no_input, DataError,
               "[data] {}: the compressed data is cut off. Fetch or make the file again.", origin_);
    }
  }

  ByteSource packed_;
  std::string origin_;
  z_stream stream_{};
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kInputBytes);
  size_t begin_ = 0;  ///< of the bytes of buffer_ that are left
  size_t end_ = 0;
  bool at_end_ = false;  ///< `packed_` has no more
  bool is_gzip_ = false;
  bool between_members_ = false;
};

}  // namespace

std::vector<std::byte> gzipped(std::span<const std::byte> bytes) {
  z_stream stream{};
  constexpr int kGzipFormat = 15 + 16;  // largest window, gzip header and trailer
  constexpr int kMemory = 8;            // zlib's default
  LS_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipFormat, kMemory,
                        Z_DEFAULT_STRATEGY) == Z_OK,
           OutOfMemoryError, "[gzip] zlib could not allocate its work memory.");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, &deflateEnd);
  std::vector<std::byte> packed;
  std::vector<std::byte> piece(kInputBytes);
  // zlib counts input in 32 bits, so it is passed in pieces.
  for (int status = Z_OK; status != Z_STREAM_END;) {
    const auto input = bytes.first(std::min(bytes.size(), size_t{1} << 30));
    stream.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(input.data()));
    stream.avail_in = static_cast<unsigned>(input.size());
    const int flush = input.size() == bytes.size() ? Z_FINISH : Z_NO_FLUSH;
    stream.next_out = reinterpret_cast<unsigned char*>(piece.data());
    stream.avail_out = static_cast<unsigned>(piece.size());
    status = deflate(&stream, flush);
    bytes = bytes.subspan(input.size() - stream.avail_in);
    const auto got = static_cast<std::ptrdiff_t>(piece.size() - stream.avail_out);
    packed.insert(packed.end(), piece.begin(), piece.begin() + got);
  }
  return packed;
}

ByteSource gunzipped(ByteSource packed, std::string origin) {
  auto gunzip = std::make_shared<Gunzip>(std::move(packed), std::move(origin));
  return [gunzip](std::span<std::byte> into) { return gunzip->read(into); };
}

}  // namespace lockstep
