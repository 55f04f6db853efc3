#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// The environment of this process when the object is made. A thread that starts a program later
/// may find the variables changed, or just being changed.
class ProcessEnvironment {
 public:
  ProcessEnvironment();

  /// The value of a variable; empty if it is not set.
  std::string value(const std::string& name) const;
  /// The file that PATH finds for a name without a slash; else the name.
  std::string file_of(const std::string& program) const;
  /// "NAME=VALUE" of each variable.
  const std::vector<std::string>& variables() const { return variables_; }

 private:
  std::vector<std::string> variables_;
};

}  // namespace lockstep
