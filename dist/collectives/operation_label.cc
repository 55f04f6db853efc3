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

OperationLabel::OperationLabel(std::string_view kind, size_t number, std::string_view unit) noexcept
    : outer_(innermost), kind_(kind), number_(number), unit_(unit) {
  innermost = this;
}

OperationLabel::~OperationLabel() { innermost = outer_; }

void OperationLabel::write(char* text, size_t bytes) noexcept {
  auto put = [at = text, left = bytes - 1](std::string_view part) mutable {
    const size_t count = std::min(part.size(), left);
    at = std::copy_n(part.data(), count, at);
    left -= count;
    *at = '\0';
  };
  if (innermost == nullptr) return put("");
  const std::string_view kind = innermost->kind_;
  if (innermost->number_ > 0) {
    put(kind);
    return put(fmt::format_int(innermost->number_).c_str());
  }
  if (innermost->unit_.empty()) return put("root unit");
  put(kind);
  put(end_of(innermost->unit_, bytes - 1 - std::min(bytes - 1, kind.size())));
}

}  // namespace lockstep::dist
