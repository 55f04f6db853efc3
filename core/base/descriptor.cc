#include "core/base/descriptor.h"

#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "core/base/mutex.h"

namespace lockstep {

struct Descriptor::Entry {
  int fd = -1;
  Entry* previous = nullptr;
  Entry* next = nullptr;
};

/// List of all open descriptors, which the child of a fork closes.
struct OpenDescriptors {
  static void add(Descriptor::Entry* entry) {
    const MutexLock lock(mutex);
    entry->next = first;
    if (first != nullptr) first->previous = entry;
    first = entry;
  }
  static void remove(Descriptor::Entry* entry) {
    const MutexLock lock(mutex);
    (entry->previous != nullptr ? entry->previous->next : first) = entry->next;
    if (entry->next != nullptr) entry->next->previous = entry->previous;
  }
  /// Runs before main(): otherwise a fork could happen while another thread opens the first
  /// descriptor, before the handlers are registered.
  static bool prepare_for_fork() {
    return pthread_atfork([]() LS_ACQUIRE(mutex) { mutex.lock(); },
                          []() LS_RELEASE(mutex) { mutex.unlock(); },
                          []() LS_RELEASE(mutex) {
                            for (auto* entry = first; entry != nullptr; entry = entry->next) {
                              (void)::close(std::exchange(entry->fd, -1));
                            }
                            mutex.unlock();
                          }) == 0;
  }

  static constinit Mutex mutex;
  static constinit Descriptor::Entry* first LS_GUARDED_BY(mutex);
};

constinit Mutex OpenDescriptors::mutex;
constinit Descriptor::Entry* OpenDescriptors::first = nullptr;

namespace {
[[maybe_unused]] const bool prepared_for_fork = OpenDescriptors::prepare_for_fork();
}  // namespace

Descriptor::Descriptor(int fd) {
  if (fd < 0) return;
  entry_ = new Entry{.fd = fd};
  OpenDescriptors::add(entry_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    entry_ = std::exchange(other.entry_, nullptr);
  }
  return *this;
}

int Descriptor::get() const noexcept { return entry_ == nullptr ? -1 : entry_->fd; }

void Descriptor::reset() noexcept {
  if (entry_ == nullptr) return;
  OpenDescriptors::remove(entry_);
  // close() releases the descriptor even if it reports an error, and no buffered data can be lost
  // here.
  if (entry_->fd >= 0) (void)::close(entry_->fd);
  delete std::exchange(entry_, nullptr);
}

}  // namespace lockstep
