// A mode sees every call of a thread, with its arguments and results, and may change them. This one
// prints shapes. A dispatch mode would see the calls that reach kernels instead: `linear` as `t`
// and `addmm`, and the operators of backward (core/dispatch/dispatch_logger.h provides both kinds).

#include <lockstep/lockstep.h>

#include <cstdio>
#include <string>

using namespace lockstep;

namespace {

class ShapeLogger : public FunctionMode {
 public:
  void call(const Operator& op, Stack& stack) override {
    const std::string arguments = shapes(stack.arguments());
    op.call_boxed(stack);  // passes the call on
    std::printf("%s(%s) -> %s\n", op.name().c_str(), arguments.c_str(),
                shapes(stack.results()).c_str());
  }

 private:
  static std::string shapes(std::span<const Value> values) {
    std::string text;
    for (const Value& value : values) {
      if (!value.is_tensor() || !value.tensor().defined()) continue;
      if (!text.empty()) text += ", ";
      text += value.tensor().shape();
    }
    return text;
  }
};

}  // namespace

int main() {
  nn::Mlp model({.inputs = 256, .hidden_widths = {512}, .classes = 10});
  const Tensor x = randn({8, 256});
  const Tensor labels = zeros({8}, DType::kI64);

  ShapeLogger logger;
  const ModeGuard on(logger);
  const Tensor loss = cross_entropy_loss(model.forward(x), labels);
}
