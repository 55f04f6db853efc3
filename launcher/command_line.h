#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// Command lines of programs and their verbs. The parser behind this takes seconds to compile, so
/// that command_line.cc alone includes it.
namespace lockstep::launcher {

/// Thrown by a verb whose exit status is its answer, after it has printed why.
class ExitStatus : public std::exception {
 public:
  explicit ExitStatus(int status) : status_(status) {}
  int status() const { return status_; }
  const char* what() const noexcept override { return "exit status"; }

 private:
  int status_;
};

/// Thrown by a verb that finds one of its arguments wrong: "name: what is wrong with it".
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What an option's value is written to.
template <class T>
concept OptionValue = std::same_as<T, int> || std::same_as<T, int64_t> ||
    std::same_as<T, uint64_t> || std::same_as<T, double> || std::same_as<T, std::string> ||
    std::same_as<T, std::vector<std::string>>;

/// An option or positional argument of a verb, and what its value must be. A handle: copies mean
/// the same option, which lives as long as its CommandLine. A value that breaks a constraint is
/// wrong usage; help shows constraints, other than check()'s, beside the option's name.
class Option {
 public:
  Option required() const;
  Option positive() const;                          ///< a number above 0
  Option not_negative() const;                      ///< a number of at least 0
  Option between(int64_t low, int64_t high) const;  ///< a whole number; both may be given
  Option one_of(const std::vector<std::string>& choices) const;
  Option existing_folder() const;
  /// `problem` says what is wrong with a value's text, or nothing: "".
  Option check(std::function<std::string(const std::string&)> problem) const;
  /// A number of bytes that may have a unit: "64KB" and "64KiB" are both 65536.
  Option binary_size() const;
  /// As binary_size(), but k is 1000 and Ki is 1024: "64KB" is 64000.
  Option decimal_size() const;

  /// Wrong usage without `other`.
  Option needs(Option other) const;
  /// For a list: `character` also ends one value and begins the next.
  Option separated_by(char character) const;
  /// For a list: every value is preceded by the option's name. Otherwise all words up to the next
  /// option are its values.
  Option one_value_each() const;
  /// Help shows the value that the variable holds now.
  Option shows_default() const;

  /// Was it on the command line? Known while the verb runs.
  bool given() const;

 private:
  friend class Verb;
  explicit Option(CLI::Option& option) : option_(&option) {}

  CLI::Option* option_;
};

/// A verb of a program: its options, what it runs, and its own verbs. A handle: copies mean the
/// same verb, which lives as long as its CommandLine.
class Verb {
 public:
  /// Adds a verb with these words for help.
  Verb verb(const std::string& name, const std::string& text) const;
  /// One of the added verbs must follow.
  void requires_verb() const;

  /// Adds an option, whose names begin with dashes ("-o,--output"), or a positional argument, whose
  /// name does not. `value` keeps what it holds where the option is not given; it must live until
  /// the verb has run, so that most verbs own it in what they pass to runs(). Text that is no T is
  /// wrong usage. A list may be given several times and takes several values.
  template <OptionValue T>
  Option option(const std::string& names, T& value, const std::string& text) const;
  /// Sets `value` when it is given.
  Option flag(const std::string& names, bool& value, const std::string& text) const;
  /// An option for help and completion alone: the verb reads the arguments itself. Without
  /// `value_name` it is a flag.
  void mention(const std::string& names, const std::string& value_name,
               const std::string& text) const;
  void without_help_flag() const;
  /// The end of the help text.
  void footer(const std::string& text) const;

  /// What happens when the verb is given, after all arguments were read. Any exception of it leaves
  /// CommandLine::parse, but for ExitStatus and UsageError.
  void runs(std::function<void()> body) const;

  std::string help() const;
  std::string name() const;
  std::vector<Verb> verbs() const;
  /// An option as completion offers it.
  struct Words {
    std::vector<std::string> names;  ///< "--output", "-o"; none for a positional argument
    std::vector<std::string> choices;
  };
  std::vector<Words> options() const;

 protected:
  explicit Verb(CLI::App& app) : app_(&app) {}

  CLI::App* app_;
};

/// The command line of a program, which is its outermost verb.
class CommandLine : public Verb {
 public:
  /// `text` begins the help. Help calls the program by `program`, or else as it was started.
  explicit CommandLine(const std::string& text, const std::string& program = "");
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds the flag --version, which prints this.
  void version(const std::string& text) const;

  /// Reads the arguments that follow argv[0] into variables and runs the verb that they name. The
  /// program's exit status (launcher/exit_code.h), where this is its end: kSuccess after help
  /// (standard output), kUsage after what is wrong with them (standard error; variables may have
  /// changed), ExitStatus's.
  [[nodiscard]] std::optional<int> parse(int argc, const char* const* argv);

 private:
  explicit CommandLine(std::unique_ptr<CLI::App> app);

  std::unique_ptr<CLI::App> owned_;
};

}  // namespace lockstep::launcher
