#include "kernels/cpu/matmul/onednn_use.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

namespace lockstep::cpu::onednn {

namespace {

constinit ExitGate g_gate;

[[maybe_unused]] const bool kResetAfterFork =
    pthread_atfork(nullptr, nullptr, [] { g_gate.reset_after_fork(); }) == 0;

}  // namespace

OnednnUse::OnednnUse() noexcept : ExitGate::Use(g_gate) {}

void note_static_objects() noexcept {
  static constinit std::atomic<int> left = 64;
  if (left.load(std::memory_order_relaxed) <= 0 || left.fetch_sub(1) <= 0) return;
  (void)std::atexit([] { g_gate.close(); });
}

}  // namespace lockstep::cpu::onednn
