#include "core/base/files/compression.h"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "core/base/check.h"

namespace lockstep {
namespace {

// Only the sizes are needed, so the output overwrites one small buffer.
constexpr size_t kChunk = 1 << 16;

// zlib and bzip2 count bytes in 32 bits, so larger input is passed in pieces.
constexpr size_t kPiece = 1 << 30;

void require(bool ok, const char* compressor) {
  LS_CHECK(ok, OutOfMemoryError, "[compression] {} could not allocate its work memory.",
           compressor);
}

}  // namespace

size_t gzip_size(std::span<const std::byte> bytes) {
  z_stream stream{};
  constexpr int kGzipFormat = 15 + 16;  // 32 KiB window, gzip header and trailer
  require(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipFormat, MAX_MEM_LEVEL,
                       Z_DEFAULT_STRATEGY) == Z_OK,
          "zlib");
  std::array<unsigned char, kChunk> buffer;
  size_t total = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kPiece));
      stream.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
      stream.avail_in = static_cast<unsigned>(piece.size());
      bytes = bytes.subspan(piece.size());
    }
    stream.next_out = buffer.data();
    stream.avail_out = kChunk;
    status = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    total += kChunk - stream.avail_out;
  }
  deflateEnd(&stream);
  return total;
}

size_t xz_size(std::span<const std::byte> bytes) {
  lzma_options_lzma options;
  lzma_lzma_preset(&options, 9);
  // A dictionary larger than the input finds no more matches, and the encoder's tables take ten
  // times the dictionary's size (64 MiB by the preset).
  options.dict_size = static_cast<uint32_t>(
      std::clamp<size_t>(bytes.size(), LZMA_DICT_SIZE_MIN, options.dict_size));
  const std::array<lzma_filter, 2> filters = {
      {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}}};
  lzma_stream stream = LZMA_STREAM_INIT;
  require(lzma_stream_encoder(&stream, filters.data(), LZMA_CHECK_CRC64) == LZMA_OK, "liblzma");
  stream.next_in = reinterpret_cast<const uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  std::array<uint8_t, kChunk> buffer;
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK) {
    stream.next_out = buffer.data();
    stream.avail_out = kChunk;
    status = lzma_code(&stream, LZMA_FINISH);
  }
  const size_t total = stream.total_out;
  lzma_end(&stream);
  require(status == LZMA_STREAM_END, "liblzma");
  return total;
}

size_t bzip2_size(std::span<const std::byte> bytes) {
  bz_stream stream{};
  require(BZ2_bzCompressInit(&stream, 9, 0, 0) == BZ_OK, "libbz2");
  std::array<char, kChunk> buffer;
  size_t total = 0;
  for (int status = BZ_OK; status != BZ_STREAM_END;) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kPiece));
      stream.next_in = reinterpret_cast<char*>(const_cast<std::byte*>(piece.data()));
      stream.avail_in = static_cast<unsigned>(piece.size());
      bytes = bytes.subspan(piece.size());
    }
    stream.next_out = buffer.data();
    stream.avail_out = kChunk;
    status = BZ2_bzCompress(&stream, bytes.empty() ? BZ_FINISH : BZ_RUN);
    total += kChunk - stream.avail_out;
  }
  BZ2_bzCompressEnd(&stream);
  return total;
}

}  // namespace lockstep
