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

/// Thrown by a verb to end the program with an exit status, after it has printed the reason.
class ExitStatus : public std::exception {
 public:
  explicit ExitStatus(int status) : status_(status) {}
  int status() const { return status_; }
  const char* what() const noexcept override { return "exit status"; }

 private:
  int status_;
};

/// Thrown by a verb that rejects one of its arguments: "name: what is wrong with it".
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Types of variables that receive an option's value.
template <class T>
concept OptionValue = std::same_as<T, int> || std::same_as<T, int64_t> ||
    std::same_as<T, uint64_t> || std::same_as<T, double> || std::same_as<T, std::string> ||
    std::same_as<T, std::vector<std::string>>;

/// An option or positional argument of a verb, with the constraints on its value. A handle: copies
/// refer to the same option, which exists as long as its CommandLine. A value that violates a
/// constraint is a usage error; help shows constraints, other than check()'s, beside the option's
/// name.
class Option {
 public:
  Option required(bool is_required = true) const;
  Option positive() const;                          ///< a number above 0
  Option not_negative() const;                      ///< a number of at least 0
  Option between(int64_t low, int64_t high) const;  ///< a whole number; both may be given
  Option one_of(const std::vector<std::string>& choices) const;
  Option existing_folder() const;
  /// `problem` returns what is wrong with a value's text, or "".
  Option check(std::function<std::string(const std::string&)> problem) const;
  /// A number of bytes with an optional unit: "64KB" and "64KiB" are both 65536.
  Option binary_size() const;
  /// As binary_size(), but k is 1000 and Ki is 1024: "64KB" is 64000.
  Option decimal_size() const;

  /// Giving this option without `other` is a usage error.
  Option needs(Option other) const;
  /// The value may be left out; the variable is then empty, and `given()` says that it was named.
  Option value_is_optional() const;
  /// For a list: `character` also separates values.
  Option separated_by(char character) const;
  /// For a list: each value must be preceded by the option's name. Otherwise all words up to the
  /// next option are its values.
  Option one_value_each() const;
  /// Help shows the variable's current value as default.
  Option shows_default() const;

  /// Whether the option was on the command line. Valid while the verb runs.
  bool given() const;

 private:
  friend class Verb;
  explicit Option(CLI::Option& option) : option_(&option) {}

  CLI::Option* option_;
};

/// A verb (subcommand) of a program: its options, its function and its subcommands. A handle:
/// copies refer to the same verb, which exists as long as its CommandLine.
class Verb {
 public:
  /// Adds a verb; `text` is its help.
  Verb verb(const std::string& name, const std::string& text) const;
  /// Makes one of the added verbs mandatory.
  void requires_verb() const;

  /// Adds an option, whose names begin with dashes ("-o,--output"), or a positional argument, whose
  /// name does not. `value` keeps its value if the option is not given; it must exist until the
  /// verb has run, so most verbs let the function passed to runs() own it. Text that is not a T is
  /// a usage error. A list may be given several times and takes several values.
  template <OptionValue T>
  Option option(const std::string& names, T& value, const std::string& text) const;
  /// Adds a flag, which sets `value` to true.
  Option flag(const std::string& names, bool& value, const std::string& text) const;
  /// Adds an option to help and completion only, for verbs that parse their arguments themselves.
  /// Without `value_name` it is a flag.
  void mention(const std::string& names, const std::string& value_name,
               const std::string& text) const;
  void without_help_flag() const;
  /// Sets the end of the help text.
  void footer(const std::string& text) const;

  /// Sets the function that runs if the verb is given, after all arguments were read. Its
  /// exceptions leave CommandLine::parse, except for ExitStatus and UsageError.
  void runs(std::function<void()> body) const;

  std::string help() const;
  std::string name() const;
  std::string text() const;
  std::vector<Verb> verbs() const;
  /// An option's words for completion.
  struct Words {
    std::vector<std::string> names;  ///< "--output", "-o"; none for a positional argument
    std::vector<std::string> choices;
    std::string text;  ///< its help
    bool takes_value = false;
  };
  std::vector<Words> options() const;

 protected:
  explicit Verb(CLI::App& app) : app_(&app) {}

  CLI::App* app_;
};

/// The command line of a program: its outermost verb.
class CommandLine : public Verb {
 public:
  /// `text` begins the help. Help names the program `program`, or by default as it was started.
  explicit CommandLine(const std::string& text, const std::string& program = "");
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds the flag --version, which prints `text`, and with the flag --json what `json` returns.
  void version(const std::string& text, std::function<std::string()> json) const;

  /// Sets a function that is called before a usage error is printed.
  void before_usage_error(std::function<void()> function);

  /// Reads the arguments after argv[0] into variables and runs the verb that they name. Options may
  /// be written with underscores for dashes. An unknown verb or option is answered with the nearest
  /// name and all names. Returns an
  /// exit status (launcher/exit_code.h) if the program should end now: kSuccess after help (on
  /// standard output), kUsage after a usage error (on standard error; variables may have changed),
  /// or that of an ExitStatus.
  [[nodiscard]] std::optional<int> parse(int argc, const char* const* argv);

 private:
  explicit CommandLine(std::unique_ptr<CLI::App> app);

  int refuse(const std::string& problem);

  std::unique_ptr<CLI::App> owned_;
  std::function<void()> before_usage_error_;
};

}  // namespace lockstep::launcher
