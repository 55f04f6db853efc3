#include "compile/compile.h"

#include "compile/program_cache.h"
#include "core/base/check.h"

namespace lockstep {

CompiledFunction::CompiledFunction(compiler::Body body, CompileOptions options)
    : body_(std::move(body)),
      programs_(std::make_shared<compiler::ProgramCache>(std::move(options))) {
  LS_CHECK(body_ != nullptr, Error, "[compile] the function is empty.");
}

std::vector<Tensor> CompiledFunction::operator()(TensorList inputs) const {
  return programs_->run(body_, {.inputs = inputs});
}

CompileCounts CompiledFunction::counts() const { return programs_->counts(); }
std::vector<std::string> CompiledFunction::reasons() const { return programs_->reasons(); }
std::vector<std::shared_ptr<const compiler::Program>> CompiledFunction::programs() const {
  return programs_->programs();
}

}  // namespace lockstep
