#include "core/base/files/zstd.h"

#include <zstd.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace lockstep {
namespace {

/// Largest window that is accepted, 128 MiB, as the program zstd does without --long: a frame of a
/// few bytes may ask for more memory than a machine has.
constexpr int kMostWindowBits = 27;

class Unzstd {
 public:
  Unzstd(ByteSource packed, std::string origin)
      : packed_(std::move(packed)), origin_(std::move(origin)), stream_(ZSTD_createDStream()) {
    LS_CHECK(stream_ != nullptr, OutOfMemoryError,
             "[zstd] libzstd could not allocate its work memory.");
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMostWindowBits);
  }

  size_t read(std::span<std::byte> into) {
    ZSTD_outBuffer output{into.data(), into.size(), 0};
    while (output.pos < output.size) {
      if (input_.pos == input_.size && !at_end_) refill();
      const size_t before = output.pos;
      const bool no_input = input_.pos == input_.size;
      if (no_input && !inside_frame_) break;
      const size_t status = ZSTD_decompressStream(stream_.get(), &output, &input_);
      LS_CHECK(ZSTD_isError(status) == 0, DataError,
               "[data] {}: the compressed data is damaged: {}. Fetch or make the file again.",
               origin_, ZSTD_getErrorName(status));
      inside_frame_ = status != 0;
      LS_CHECK(!no_input || !inside_frame_ || output.pos > before, DataError,
               "[data] {}: the compressed data is cut off. Fetch or make the file again.", origin_);
    }
    return output.pos;
  }

 private:
  void refill() {
    const size_t got = packed_(buffer_);
    at_end_ = got < buffer_.size();
    input_ = {buffer_.data(), got, 0};
  }

  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  ByteSource packed_;
  std::string origin_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(ZSTD_DStreamInSize());
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool at_end_ = false;        ///< `packed_` has no more
  bool inside_frame_ = false;  ///< libzstd expects more
};

}  // namespace

bool has_zstd() { return true; }

ByteSource zstd_unpacked(ByteSource packed, std::string origin) {
  auto unpacked = std::make_shared<Unzstd>(std::move(packed), std::move(origin));
  return [unpacked](std::span<std::byte> into) { return unpacked->read(into); };
}

}  // namespace lockstep
