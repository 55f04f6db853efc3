#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Fills a span with the next bytes and returns their number, which is smaller than the span only
/// at the end.
using ByteSource = std::function<size_t(std::span<std::byte>)>;

/// The bytes of `packed`, decompressed if they begin with gzip's magic number (one or more
/// members), a piece at a time. Reading throws DataError naming `origin` if compressed data is
/// damaged or truncated.
ByteSource gunzipped(ByteSource packed, std::string origin);

/// The bytes compressed as one gzip member, at zlib's default level, without name or time: the same
/// bytes give the same result.
std::vector<std::byte> gzipped(std::span<const std::byte> bytes);

}  // namespace lockstep
