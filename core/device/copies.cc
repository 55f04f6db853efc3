#include "core/device/copies.h"

#include <atomic>
#include <cstdio>

#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "core/base/log_text.h"
#include "core/base/spans/span.h"

namespace lockstep {

namespace {

constinit std::atomic<int64_t> g_copies{0};
constinit std::atomic<int64_t> g_bytes{0};

bool warns_of_copies() {
  static const bool on = environment_flag("LOCKSTEP_WARN_COPIES");
  return on;
}

}  // namespace

CopyCount hidden_copies() {
  return {g_copies.load(std::memory_order_relaxed), g_bytes.load(std::memory_order_relaxed)};
}

void count_hidden_copy(std::string_view op, const Tensor& tensor, std::string_view why) {
  g_copies.fetch_add(1, std::memory_order_relaxed);
  g_bytes.fetch_add(static_cast<int64_t>(tensor.nbytes()), std::memory_order_relaxed);
  record_moment(SpanKind::kCopy, "hidden copy", 0, static_cast<int64_t>(tensor.nbytes()), why);
  if (warns_of_copies()) {
    write_log(stderr, fmt::format("copy: [{}] {}, {} bytes: {}\n", op, to_string(tensor),
                                  tensor.nbytes(), why));
  }
}

}  // namespace lockstep
