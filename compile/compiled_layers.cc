#include "compile/compiled_layers.h"

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/saved_tensor_hooks.h"
#include "compile/program_cache.h"
#include "core/dispatch/dispatch_trace.h"
#include "core/dispatch/observer.h"

namespace lockstep {

namespace {

/// Why the layer itself has to run whatever it computes; empty if it need not.
std::string_view why_eager() {
  if (innermost_observer() != nullptr || traces_dispatch()) {
    return "an observer looks at the calls of the thread";
  }
  if (detail::saved_tensor_hooks != nullptr) return "hooks keep what is saved for backward";
  if (detail::anomaly_mode.enabled) return "anomaly mode names the operators of backward";
  if (is_inference_mode_enabled()) return "inference mode is on";
  return {};
}

}  // namespace

CompiledLayers::CompiledLayers(CompileOptions options)
    : programs_(std::make_shared<compiler::ProgramCache>(std::move(options))) {}

std::vector<Tensor> CompiledLayers::operator()(const compiler::Body& body,
                                               const CompiledArguments& call) const {
  if (const std::string_view why = why_eager(); !why.empty()) {
    programs_->count_eager(std::string(why));
    return body(call.inputs);
  }
  return programs_->run_alike(body, call);
}

CompileCounts CompiledLayers::counts() const { return programs_->counts(); }
std::vector<std::string> CompiledLayers::reasons() const { return programs_->reasons(); }
std::vector<std::shared_ptr<const compiler::Program>> CompiledLayers::programs() const {
  return programs_->programs();
}

}  // namespace lockstep
