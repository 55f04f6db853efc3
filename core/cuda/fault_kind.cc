#include "core/cuda/fault_kind.h"

#include <atomic>
#include <utility>

#include "core/base/check.h"

namespace lockstep::cuda {

namespace {
constinit std::atomic<uint32_t> g_kinds = 0;
}

FaultKind::FaultKind(std::string op, std::string what)
    : number_(g_kinds.fetch_add(1, std::memory_order_relaxed)),
      op_(std::move(op)),
      what_(std::move(what)) {
  LS_CHECK(number_ < kMost, InternalError, "[{}] more than {} kinds of faults.", op_, kMost);
}

}  // namespace lockstep::cuda
