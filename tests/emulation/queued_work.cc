#include "tests/emulation/queued_work.h"

#include <mutex>
#include <utility>

namespace lockstep::emulation {

namespace {

std::mutex g_mutex;
bool g_counting = false;
QueuedWork::Counts g_counts;

}  // namespace

QueuedWork::QueuedWork() {
  const std::lock_guard lock(g_mutex);
  g_counting = true;
  g_counts.clear();
}

QueuedWork::~QueuedWork() {
  const std::lock_guard lock(g_mutex);
  g_counting = false;
}

QueuedWork::Counts QueuedWork::take() {
  const std::lock_guard lock(g_mutex);
  return std::exchange(g_counts, {});
}

void note_queued(const std::string& what) {
  const std::lock_guard lock(g_mutex);
  if (g_counting) ++g_counts[what];
}

}  // namespace lockstep::emulation
