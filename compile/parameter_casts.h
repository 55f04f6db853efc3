#pragma once

#include <cstddef>
#include <vector>

#include "autograd/cast_source.h"
#include "compile/recorder.h"

namespace lockstep::compiler {

/// Another tensor of the same elements, without the history.
Tensor apart(const Tensor& tensor);

/// Announces the casts of parameters to the recorder, as inputs, when autocast first asks for them.
class ParameterCasts final : public CastSource {
 public:
  ParameterCasts(Recorder& recorder, TensorList parameters)
      : recorder_(recorder), parameters_(parameters) {}

  Tensor cast(const Tensor& tensor, DType dtype) override;

  struct Given {
    size_t parameter;
    Tensor tensor;
  };
  const std::vector<Given>& given() const { return given_; }

 private:
  Recorder& recorder_;
  TensorList parameters_;
  std::vector<Given> given_;
};

}  // namespace lockstep::compiler
