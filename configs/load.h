#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/base/error.h"

/// Run configs: text files of the schema in configs/run.proto. To use the returned messages,
/// include "configs/run.pb.h" in the .cc file.
namespace lockstep::config {

class RunConfig;

/// A ConfigError that knows where the wrong value was written. what() is "where: problem"; programs
/// print "where: ConfigError: problem".
class SourceError : public ConfigError {
 public:
  SourceError(std::string where, std::string problem);

  /// "configs/a.txtpb:7:3" (line and column from 1), a file alone, or "--set path=value".
  const std::string& where() const noexcept { return where_; }
  const std::string& problem() const noexcept { return problem_; }

 private:
  std::string where_;
  std::string problem_;
};

/// Where each part of a config was written last: field path ("optimizer.learning_rate"; a message
/// ("optimizer") too) to "file:line:column", "LOCKSTEP_PATH=value", "--set path=value" or
/// "default". A list has one origin, that of the last change. The empty path holds the last file.
using Origins = std::map<std::string, std::string>;

/// Environment variables by name. Those of the process: process_variables in configs/variables.h.
using Variables = std::map<std::string, std::string>;

/// Reads `files` (later ones win field by field, a list replaces the one before; choosing another
/// member of a oneof drops the first), then applies `variables` ("LOCKSTEP_TRAIN_STEPS", see
/// apply_variables) and `overrides`
/// ("path=value", see set_value), and resolves. `origins`, if given, receives where every value
/// came from. Throws SourceError for the first thing wrong.
RunConfig load(std::span<const std::string> files, std::span<const std::string> overrides = {},
               Origins* origins = nullptr, const Variables& variables = {});

/// The same from one text in memory; `name` stands for the file in messages.
RunConfig load_text(const std::string& text, const std::string& name = "config.txtpb");

/// A resolved config as a text file that load reads back to the same config, with the two lines
/// that name its schema on top.
std::string to_text(const RunConfig& config);

/// The steps of load, for callers that build a config in another order.
///
/// Lays one more file over `config`. Throws SourceError if the file cannot be read, is not text, is
/// larger than 4 MiB, or does not fit the schema; `config` is then unchanged. Ranges are left to
/// resolve.
void merge_file(RunConfig& config, Origins& origins, const std::string& path);
void merge_text(RunConfig& config, Origins& origins, const std::string& text,
                const std::string& name);

/// Applies "train.steps=100": the value is typed by the schema and written as in a file, texts
/// without quotes. Naming a path through a oneof chooses that member; "data.random={}" chooses one
/// without setting anything in it. A list is replaced by "path=[1, 2]" or "path=1,2" and emptied by
/// "path=[]"; "path+=3" or "path+=[3, 4]" appends to it, to its default if nothing set it. Throws
/// SourceError.
void set_value(RunConfig& config, Origins& origins, std::string_view assignment);
/// The same for an assignment that stands elsewhere than after --set: `where` names the place.
void set_value(RunConfig& config, Origins& origins, std::string_view assignment,
               const std::string& where);

/// Sets every field that nothing set to its default and checks the whole: ranges, required fields,
/// and what must hold between fields. Afterwards every scalar of every chosen message is set.
/// Resolving twice changes nothing. Throws SourceError.
void resolve(RunConfig& config, Origins& origins);

}  // namespace lockstep::config
