#include "tests/emulation/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#include "tests/emulation/races.h"

#if !defined(__x86_64__)
#error "Switching stacks is written for x86-64: see cmake, which leaves this out elsewhere."
#endif

// Saves the callee-saved registers, switches stacks and restores the other stack's registers. The
// floating-point control words belong to the thread, and no code here changes them.
asm(R"(
    .text
    .p2align 4
    .globl ls_switch_stacks
    .hidden ls_switch_stacks
    .type ls_switch_stacks, @function
ls_switch_stacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size ls_switch_stacks, .-ls_switch_stacks
)");
extern "C" __attribute__((visibility("hidden"))) void ls_switch_stacks(void** saved, void* next);

namespace lockstep::emulation {

namespace {

constexpr size_t kGuardBytes = 4096;
constexpr size_t kSavedRegisters = 6;

#if defined(__SANITIZE_ADDRESS__)
Fiber* g_left = nullptr;  ///< the fiber that switched last
#endif
#if defined(LOCKSTEP_THREAD_SANITIZER)
void* g_home = nullptr;  ///< the thread that enters fibers

/// A thread that what the running fiber did is not ordered before.
void* make_thread() {
  void* const here = races::this_thread();
  races::become(g_home);
  void* const made = races::make_thread();
  races::become(here);
  return made;
}
#endif

}  // namespace

Fiber::Fiber(void (*entry)()) : entry_(entry) {
  void* const mapped = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<char*>(mapped);
  mprotect(stack_, kGuardBytes, PROT_NONE);
#if defined(__SANITIZE_ADDRESS__)
  bottom_ = stack_ + kGuardBytes;
  bytes_ = kStackBytes;
#endif
  start();
}

Fiber::~Fiber() {
#if defined(LOCKSTEP_THREAD_SANITIZER)
  if (stack_ != nullptr && thread_ != nullptr) races::destroy_thread(thread_);
#endif
  if (stack_ != nullptr) munmap(stack_, kGuardBytes + kStackBytes);
}

void Fiber::start() {
#if defined(LOCKSTEP_THREAD_SANITIZER)
  // It takes half a millisecond to make one, so it stays unless it was left in the midst.
  if (thread_ != nullptr && is_entered_) {
    races::destroy_thread(thread_);
    thread_ = nullptr;
  }
  if (thread_ == nullptr) thread_ = make_thread();
  is_entered_ = false;
#endif
  // A stack as if `entry` had been called: the null return address ends every stack walk, and the
  // alignment is that of a call.
  auto* top = reinterpret_cast<uint64_t*>(stack_ + kGuardBytes + kStackBytes);
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(entry_);
  top -= kSavedRegisters;
  std::memset(top, 0, kSavedRegisters * sizeof(uint64_t));
  top_of_stack_ = top;
#if defined(__SANITIZE_ADDRESS__)
  fake_stack_ = nullptr;
  // Functions that never returned have left poisoned redzones.
  __asan_unpoison_memory_region(bottom_, bytes_);
#endif
}

void Fiber::switch_to(Fiber& next) {
#if defined(__SANITIZE_ADDRESS__)
  g_left = this;
  __sanitizer_start_switch_fiber(&fake_stack_, next.bottom_, next.bytes_);
#endif
#if defined(LOCKSTEP_THREAD_SANITIZER)
  if (stack_ == nullptr) thread_ = races::this_thread();
  next.is_entered_ = true;
  races::become(next.thread_);
#endif
  ls_switch_stacks(&top_of_stack_, next.top_of_stack_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &g_left->bottom_, &g_left->bytes_);
#endif
}

void Fiber::enter_from_here() {
#if defined(LOCKSTEP_THREAD_SANITIZER)
  g_home = races::this_thread();
#endif
}

void Fiber::leaves_for_good() {
#if defined(LOCKSTEP_THREAD_SANITIZER)
  is_entered_ = false;
#endif
}

void Fiber::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &g_left->bottom_, &g_left->bytes_);
#endif
}

}  // namespace lockstep::emulation
