#include "dist/collectives/operation_label.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/utf8.h"

namespace lockstep::dist {

namespace {

constinit thread_local const OperationLabel* innermost = nullptr;

/// The end of a path that has at most `bytes` bytes, from the beginning of a character on.
std::string_view end_of(std::string_view path, size_t bytes) {
  if (path.size() <= bytes) return path;
  path.remove_prefix(path.size() - bytes);
  while (!path.empty() && continues_utf8(path.front())) path.remove_prefix(1);
  return path;
}

}  // namespace

OperationLabel::OperationLabel(size_t bucket, std::string_view unit) noexcept
    : outer_(innermost), bucket_(bucket), unit_(unit) {
  innermost = this;
}

OperationLabel::~OperationLabel() { innermost = outer_; }

void OperationLabel::write(char* text, size_t bytes) noexcept {
  constexpr std::string_view kUnit = "unit ";
  auto put = [at = text, left = bytes - 1](std::string_view part) mutable {
    const size_t count = std::min(part.size(), left);
    at = std::copy_n(part.data(), count, at);
    left -= count;
    *at = '\0';
  };
  if (innermost == nullptr) return put("");
  if (innermost->bucket_ > 0) {
    put("bucket ");
    return put(fmt::format_int(innermost->bucket_).c_str());
  }
  if (innermost->unit_.empty()) return put("root unit");
  put(kUnit);
  put(end_of(innermost->unit_, bytes - 1 - std::min(bytes - 1, kUnit.size())));
}

}  // namespace lockstep::dist
