#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/load.h"

/// Environment variables LOCKSTEP_* that set no field of a config.
namespace lockstep::config {

/// A variable that the program reads.
struct ProgramVariable {
  const char* name;
  const char* meaning;
  const char* accepted;  ///< its values, for messages: "0 or 1"
  /// Returns what is wrong with a value that is not empty: "" for nothing, or a sentence. Null:
  /// where it is used, the value is checked, or any text is one.
  std::string (*problem)(std::string_view value);
  /// For variables that all ranks of a job must have alike: the value that an unset one stands for.
  /// Null: ranks may differ, since it concerns one process or changes no result.
  const char* alike = nullptr;
};

/// All variables that the program reads and that set no field.
const std::vector<ProgramVariable>& program_variables();

/// Throws SourceError for the first program variable with a value that is not accepted. Empty ones
/// count as unset.
void check_program_variables(const Variables& variables);

/// Returns a line "NAME: VALUE" for each variable that all ranks of a job must have alike.
std::string values_alike_on_ranks(const Variables& variables);

}  // namespace lockstep::config
