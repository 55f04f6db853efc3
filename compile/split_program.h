#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/program.h"

namespace lockstep::compiler {

/// The programs of a function that reads values on the host, for one kind of call. What lies
/// between two reads is a graph of its own; what follows a read is the graph that was recorded for
/// the value that is read. Immutable, so several threads may run it at once.
class SplitProgram {
 public:
  /// Puts recorded ways through the function together: each has a path (Program::path), and the
  /// values that they read differ. Parts that `before` has are kept with their kernels. Returns
  /// null if the ways differ before they read different values. Appends what the passes did to
  /// `log`, unless that is null.
  static std::shared_ptr<SplitProgram> make(std::vector<std::shared_ptr<const Program>> ways,
                                            const std::vector<Pass>& passes,
                                            const SplitProgram* before = nullptr,
                                            std::vector<std::string>* log = nullptr);

  ~SplitProgram();
  SplitProgram(const SplitProgram&) = delete;
  SplitProgram& operator=(const SplitProgram&) = delete;

  /// Has kernels made for the groups of the parts that `make` added, and waits for them if asked
  /// to. To be called before the first run.
  void request_kernels(bool waits);
  /// The groups of all graphs.
  std::vector<const GroupKernel*> kernels() const;
  /// The ways, in the order in which they were recorded.
  const std::vector<std::shared_ptr<const Program>>& ways() const { return ways_; }
  /// Number of graphs that a call of the way runs forward.
  static size_t count_parts(const Program& way) { return way.path()->reads.size() + 1; }
  /// Whether the captured tensors have the types that they had when they were recorded.
  bool captured_are_as_recorded() const;
  /// As Program::may_change_captured, of any way.
  bool may_change_captured(TensorList inputs) const;

  /// Does what the function did, on other tensors of the same types. Returns nothing where a value
  /// is read that no way was recorded for, and says so in `miss`: then no tensor is changed, and
  /// the thread's generator stands where it stood.
  std::optional<std::vector<Tensor>> run(TensorList inputs, std::string& miss) const;

 private:
  struct Part;
  class Maker;

  SplitProgram();

  std::vector<std::shared_ptr<const Program>> ways_;
  std::unique_ptr<Part> first_;
};

}  // namespace lockstep::compiler
