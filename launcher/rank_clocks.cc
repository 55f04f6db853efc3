#include "launcher/rank_clocks.h"

#include <chrono>
#include <limits>

#include "core/ops/factory/factory.h"

namespace lockstep::launcher {

namespace {

constexpr int kRounds = 16;
constexpr int kTag = 22;

int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

int64_t clock_offset_ns(dist::ProcessGroup& group) {
  const Tensor message = zeros({1}, {DType::kI64, kCPU});
  int64_t& value = *message.data<int64_t>();
  if (group.rank() == 0) {
    for (int rank = 1; rank < group.size(); ++rank) {
      for (int round = 0; round < kRounds; ++round) {
        group.recv(message, rank, kTag).wait();
        value = wall_ns();
        group.send(message, rank, kTag).wait();
      }
    }
    return 0;
  }
  int64_t offset = 0;
  int64_t quickest = std::numeric_limits<int64_t>::max();
  for (int round = 0; round < kRounds; ++round) {
    const int64_t sent = wall_ns();
    group.send(message, 0, kTag).wait();
    group.recv(message, 0, kTag).wait();
    const int64_t received = wall_ns();
    if (received - sent >= quickest) continue;
    quickest = received - sent;
    offset = sent + quickest / 2 - value;
  }
  return offset;
}

}  // namespace lockstep::launcher
