#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "train/weights/safetensors.h"

namespace lockstep::conformance {

/// A value as a case file writes it: tagged, not yet of the type that a schema asks for.
struct CaseValue {
  enum class Kind : uint8_t {
    kNull,
    kBool,
    kInt,
    kFloat,
    kString,
    kDType,
    kMemoryFormat,
    kTensor,
    kList,
  };

  Kind kind = Kind::kNull;
  int64_t integer = 0;          ///< kBool (0 or 1) and kInt
  double real = 0;              ///< kFloat
  std::string text;             ///< kString, name of a kDType or kMemoryFormat, key of a kTensor
  std::vector<CaseValue> list;  ///< kList

  /// A kTensor may be a strided view of the flat storage that the file keeps.
  struct View {
    Dims sizes;
    Dims strides;
    int64_t offset = 0;
  };
  std::optional<View> view;
};

/// Gradient that one argument must get.
struct ExpectedGradient {
  size_t argument = 0;            ///< position in the call; unused when `keyword` is set
  std::string keyword;            ///< name of a keyword argument
  std::optional<size_t> element;  ///< of a list argument
  CaseValue value;
};

/// One call and its answers.
struct Case {
  std::vector<CaseValue> arguments;
  std::vector<std::pair<std::string, CaseValue>> keywords;
  std::vector<CaseValue> outputs;
  std::vector<std::string> output_dtypes;                ///< empty for what is no tensor
  std::vector<std::pair<size_t, CaseValue>> cotangents;  ///< by output
  std::vector<ExpectedGradient> gradients;
};

/// `<op>.json` with the `<op>.safetensors` beside it.
class CaseFile {
 public:
  /// Throws DataError naming the file when it is malformed, CheckpointError from the tensors' file.
  explicit CaseFile(const std::filesystem::path& json_path);

  /// Without "aten::".
  const std::string& op() const { return op_; }
  const std::vector<Case>& cases() const { return cases_; }
  /// A new cpu tensor, a leaf: strided views are tensors of their own over fresh storage. Throws
  /// DataError when the value is no tensor or leaves its storage.
  Tensor tensor(const CaseValue& value) const;

 private:
  std::string op_;
  std::vector<Case> cases_;
  train::SafetensorsFile tensors_;
};

}  // namespace lockstep::conformance
