// Kernels split their work into fixed blocks, so the number of threads changes no bit.

#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

class ThreadsGuard {
 public:
  ThreadsGuard() : before_(num_threads()) {}
  ~ThreadsGuard() { set_num_threads(before_); }

 private:
  int before_;
};

TEST(Threads, DoNotChangeABit) {
  const ThreadsGuard guard;
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    if (op.kind() != OpKind::kStructured || samples.unspecified_values) return;
    for_each_sample(samples.large, [&](const Sample& sample) {
      set_num_threads(1);
      Arguments arguments = arguments_of(op, sample);
      const Results want = call_operator(op, arguments);
      for (int threads : {2, 4}) {
        set_num_threads(threads);
        Arguments fresh = arguments_of(op, sample);
        EXPECT_EQ(difference(call_operator(op, fresh), want, 0), "") << threads << " threads";
      }
    });
  });
}

}  // namespace
}  // namespace lockstep
