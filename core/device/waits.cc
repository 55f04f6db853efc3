#include "core/device/waits.h"

#include <atomic>
#include <cstdio>

#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "core/base/log_text.h"
#include "core/base/spans/span.h"
#include "core/device/active_capture.h"
#include "core/device/device_runtime.h"

namespace lockstep {

namespace {

constinit std::atomic<int64_t> g_waits{0};

bool warns_of_waits() {
  static const bool on = environment_flag("LOCKSTEP_WARN_WAITS");
  return on;
}

}  // namespace

int64_t hidden_waits() { return g_waits.load(std::memory_order_relaxed); }

void count_hidden_wait(std::string_view op, const Stream& stream, std::string_view why) {
  g_waits.fetch_add(1, std::memory_order_relaxed);
  if (warns_of_waits())
    write_log(stderr, fmt::format("wait: [{}] {}: {}\n", op, to_string(stream), why));
}

void wait_hidden(std::string_view op, const Stream& stream, std::string_view why) {
  if (find_runtime(stream.device) == nullptr) return;
  require_no_capture(op, why);
  count_hidden_wait(op, stream, why);
  const Span span(SpanKind::kWait, "hidden wait", 0, 0, why);
  stream.synchronize();
}

}  // namespace lockstep
