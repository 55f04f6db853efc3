#include "core/base/blocked_signals.h"

#include <initializer_list>

namespace lockstep {

BlockedSignals::BlockedSignals() noexcept {
  sigset_t others;
  sigfillset(&others);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    sigdelset(&others, fault);
  }
  blocked_ = pthread_sigmask(SIG_BLOCK, &others, &before_) == 0;
}

BlockedSignals::~BlockedSignals() {
  if (blocked_) (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace lockstep
