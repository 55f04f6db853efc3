#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/conformance/case_text.h"
#include "train/weights/safetensors.h"

namespace lockstep::conformance {

/// A case file: `<op>.json` and the `<op>.safetensors` next to it.
class CaseFile {
 public:
  /// Throws DataError naming the file when it is malformed, or CheckpointError for the tensors'
  /// file.
  explicit CaseFile(const std::filesystem::path& json_path);

  /// Name of the operator, without "aten::".
  const std::string& op() const { return recorded_.op; }
  const std::vector<Case>& cases() const { return recorded_.cases; }
  /// Makes a new CPU tensor, a leaf. Strided views get their own storage. Throws DataError when the
  /// value is no tensor or exceeds its storage.
  Tensor tensor(const CaseValue& value) const;

 private:
  RecordedCases recorded_;
  train::SafetensorsFile tensors_;
};

}  // namespace lockstep::conformance
