#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

/// Run configs: text files of the schema in configs/run.proto. To use the returned messages,
/// include "configs/run.pb.h" in the .cc file.
namespace lockstep::config {

class RunConfig;

/// A ConfigError with the place where the wrong value was written. what() is "where: problem";
/// programs print "where: ConfigError: problem".
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

/// Maps each field path of a config ("optimizer.learning_rate", and "optimizer" for the message) to
/// the place that set it last: "file:line:column", "LOCKSTEP_PATH=value", "--set path=value" or
/// "default". A list has one origin, that of its last change. The empty path maps to the last file.
using Origins = std::map<std::string, std::string>;

/// Environment variables by name; process_variables in configs/variables.h returns the process's.
using Variables = std::map<std::string, std::string>;

/// Reads `files` (later ones override field by field; a list replaces the earlier list, and
/// choosing another member of a oneof drops the first), then applies `variables`
/// ("LOCKSTEP_TRAIN_STEPS", see apply_variables) and `overrides` ("path=value", see set_value), and
/// resolves. `origins`, if given, receives the origin of every value. Throws SourceError for the
/// first error.
RunConfig load(std::span<const std::string> files, std::span<const std::string> overrides = {},
               Origins* origins = nullptr, const Variables& variables = {});

/// Loads a config from one text in memory; `name` is used as file name in messages.
RunConfig load_text(const std::string& text, const std::string& name = "config.txtpb");

/// Returns a resolved config as a text file that load reads back to the same config, beginning with
/// the two lines that name its schema.
std::string to_text(const RunConfig& config);

/// Where the config that `path` names was moved: "configs/examples/NAME" for "configs/NAME" when
/// only the former exists, else "". merge_file reads that file; programs tell the user.
std::string moved_config(const std::string& path);

/// The steps of load, for callers that build a config in another order.
///
/// Merges one more file into `config`. Throws SourceError if the file cannot be read, is not text,
/// is larger than 4 MiB, or does not fit the schema; `config` is then unchanged. Ranges are checked
/// by resolve.
void merge_file(RunConfig& config, Origins& origins, const std::string& path);
void merge_text(RunConfig& config, Origins& origins, const std::string& text,
                const std::string& name);

/// Applies an assignment such as "train.steps=100". The value is typed by the schema and written as
/// in a file, texts without quotes. A path through a oneof chooses that member; "data.random={}"
/// chooses one without setting a field in it. A list is replaced by "path=[1, 2]" or "path=1,2" and
/// emptied by "path=[]"; "path+=3" or "path+=[3, 4]" appends to it, or to its default if nothing
/// set it. Throws SourceError.
void set_value(RunConfig& config, Origins& origins, std::string_view assignment);
/// As above, for an assignment that was not given by --set; `where` is its origin.
void set_value(RunConfig& config, Origins& origins, std::string_view assignment,
               const std::string& where);

/// Sets all unset fields to their defaults and checks the config: ranges, required fields, and
/// constraints between fields. Afterwards every scalar of every chosen message is set. Idempotent.
/// Throws SourceError.
void resolve(RunConfig& config, Origins& origins);

/// Sets the defaults that the schema has, and returns the required fields that nothing sets, each
/// with what it accepts: "train.steps: an integer from 1 to 10^12". Checks nothing.
std::vector<std::string> set_defaults(RunConfig& config, Origins& origins);

}  // namespace lockstep::config
