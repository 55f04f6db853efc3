#include "autograd/function_node.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeindex>
#include <unordered_map>

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/ops/factory/factory.h"

namespace lockstep {

namespace {

/// Node of gradients computed by a once_differentiable backward: applying it throws AutogradError.
class OnceDifferentiable final : public Node {
 public:
  explicit OnceDifferentiable(std::string function) : function_(std::move(function)) {}
  Gradients apply(std::span<Tensor>, const BackwardCall&) override {
    throw AutogradError(
        fmt::format("[{}] its backward is differentiated, but it declares once_differentiable. "
                    "Write backward with recorded operators and take the declaration away, or do "
                    "not ask for second derivatives.",
                    function_));
  }
  std::string name() const override { return "OnceDifferentiable"; }

 private:
  std::string function_;
};

/// Attaches OnceDifferentiable to the gradients that `node` returned for `grads`.
Gradients guarded(const FunctionNode& node, const std::string& function,
                  std::span<const Tensor> grads, const Gradients& given) {
  const Ref<Node> error = make_ref<OnceDifferentiable>(function);
  for (const Edge& edge : node.next_edges()) error->add_edge(edge);
  for (const Tensor& grad : grads) {
    if (grad.defined()) error->add_edge(gradient_edge(grad));
  }
  Gradients results;
  for (const Tensor& gradient : given) {
    Tensor& result = results.emplace_back();
    if (!gradient.defined() || !is_floating(gradient.dtype())) continue;
    result = alias_tensor(gradient, gradient.sizes(), gradient.strides(), gradient.storage_offset(),
                          gradient.dtype(), false);
    set_history(*result.impl(), error, error->add_output(*result.impl()));
  }
  return results;
}

}  // namespace

namespace {

std::string demangled_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? plain.get() : type.name();
  size_t depth = 0;
  for (size_t i = name.size(); i > 1; --i) {  // the last "::" outside of template arguments
    const char c = name[i - 1];
    if (c == '>' || c == ')') ++depth;
    if (c == '<' || c == '(') --depth;
    if (depth == 0 && c == ':') return name.substr(i);
  }
  return name;
}

}  // namespace

const std::string& function_name(const std::type_info& type) {
  struct Names {
    Mutex mutex;
    std::unordered_map<std::type_index, std::string> of_types LS_GUARDED_BY(mutex);
  };
  static Names names;  // whose texts do not move
  const MutexLock lock(names.mutex);
  const auto [found, is_new] = names.of_types.try_emplace(type);
  if (is_new) found->second = demangled_name(type);
  return found->second;
}

std::string FunctionNode::name() const { return function_name(info_.type) + "Backward"; }

void FunctionNode::release_saved() {
  released_ |= !saved_.empty();
  saved_.clear();
}

std::vector<SavedTensorInfo> FunctionNode::saved_tensors() const {
  std::vector<SavedTensorInfo> infos;
  for (const SavedTensor& saved : saved_) {
    if (!saved.defined()) continue;
    SavedTensorInfo& info = infos.emplace_back();
    info.name = fmt::format("saved{}", infos.size() - 1);
    info.tensor = saved.peek();
    if (info.tensor.defined()) info.bytes = info.tensor.nbytes();
  }
  return infos;
}

std::vector<Tensor> FunctionNode::unpack(Node* owner) const {
  LS_CHECK(!released_, AutogradError,
           "[{}] the tensors it saved were freed, because a backward already ran through it: "
           "expected one backward per graph. Pass retain_graph to the first, or compute the result "
           "again.",
           name());
  std::vector<Tensor> tensors;
  tensors.reserve(saved_.size());
  const std::string& function = function_name(info_.type);
  for (const SavedTensor& saved : saved_) {
    tensors.push_back(saved.unpack(function, owner));
  }
  return tensors;
}

std::vector<Tensor> FunctionNode::materialized(std::span<Tensor> grads) const {
  std::vector<Tensor> all;
  all.reserve(grads.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    all.push_back(std::move(grads[i]));
    const GradientMeta& meta = results_[i];
    if (materialize_ && !all[i].defined() && meta.defined) {
      all[i] = zeros(meta.sizes, TensorOptions(meta.dtype, meta.device));
    }
  }
  return all;
}

Gradients FunctionNode::apply_as(Node* owner, std::span<Tensor> grads, const BackwardCall& call) {
  const std::vector<Tensor> incoming = materialized(grads);
  FunctionContext context(*this, owner, call);
  const bool recording = is_grad_enabled();
  Gradients given;
  {
    const SetGradEnabled mode(recording && !info_.once_differentiable);
    given = info_.backward(context, incoming);
  }
  LS_CHECK(given.size() == next_edges().size(), AutogradError,
           "[{}] backward returned the wrong number of gradients: expected {}, one per tensor "
           "argument of forward (each of a list counts), got {}. An undefined Tensor stands for "
           "zero.",
           function_name(info_.type), next_edges().size(), given.size());
  if (!recording || !info_.once_differentiable) return given;
  return guarded(*this, function_name(info_.type), incoming, given);
}

}  // namespace lockstep
