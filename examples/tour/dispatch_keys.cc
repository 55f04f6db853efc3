// Which keys handle a call: those of its tensors, plus those that the thread includes, minus those
// that it excludes. An observer prints the keys of every call; calls made inside a call are
// indented.

#include <lockstep/lockstep.h>

#include <cstdio>

#include "core/dispatch/observer.h"

using namespace lockstep;

namespace {

class KeyPrinter : public CallObserver {
 public:
  void enter(const Operator& op, KeySet keys, const Stack&) override {
    std::printf("%*s%s %s\n", depth_, "", op.name().c_str(), to_string(keys).c_str());
    depth_ += 2;
  }
  void exit(const Operator&, const Stack&) noexcept override { depth_ -= 2; }

 private:
  int depth_ = 2;
};

}  // namespace

int main() {
  const Tensor x = randn({4, 4});
  const Tensor weight = randn({4, 4}).set_requires_grad();
  KeyPrinter printer;
  const ObserverGuard on(printer);

  std::printf("nothing requires grad: kernels only\n");
  (void)mm(x, x);

  std::printf("the weight requires grad: recorded\n");
  (void)mm(x, weight);

  std::printf("under no_grad: Autograd is taken away\n");
  {
    const NoGradGuard no_grad;
    (void)mm(x, weight);
  }

  std::printf("under autocast: arguments are cast first, and the casts are recorded\n");
  {
    const AutocastGuard autocast(DeviceType::kCPU, true, DType::kBF16);
    const Tensor y = mm(x, weight);
    std::printf("  -> %s\n", to_string(y).c_str());
  }
}
