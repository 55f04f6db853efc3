#include "launcher/command_line.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "launcher/exit_code.h"

namespace lockstep::launcher {
namespace {

/// Parses the values from "TEXT:{a,b,c}", CLI11's description of an option with fixed choices.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == type.npos || end == type.npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

}  // namespace

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option Option::not_negative() const {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option Option::between(int64_t low, int64_t high) const {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option Option::one_of(const std::vector<std::string>& choices) const {
  option_->check(CLI::IsMember(choices));
  return *this;
}

Option Option::existing_folder() const {
  option_->check(CLI::ExistingDirectory);
  return *this;
}

Option Option::check(std::function<std::string(const std::string&)> problem) const {
  option_->check(std::move(problem));
  return *this;
}

Option Option::binary_size() const {
  option_->transform(CLI::AsSizeValue(false));
  return *this;
}

Option Option::decimal_size() const {
  option_->transform(CLI::AsSizeValue(true));
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::separated_by(char character) const {
  option_->delimiter(character);
  return *this;
}

Option Option::one_value_each() const {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::shows_default() const {
  option_->capture_default_str();
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

Verb Verb::verb(const std::string& name, const std::string& text) const {
  return Verb(*app_->add_subcommand(name, text));
}

void Verb::requires_verb() const { app_->require_subcommand(1); }

template <OptionValue T>
Option Verb::option(const std::string& names, T& value, const std::string& text) const {
  return Option(*app_->add_option(names, value, text));
}

template Option Verb::option(const std::string&, int&, const std::string&) const;
template Option Verb::option(const std::string&, int64_t&, const std::string&) const;
template Option Verb::option(const std::string&, uint64_t&, const std::string&) const;
template Option Verb::option(const std::string&, double&, const std::string&) const;
template Option Verb::option(const std::string&, std::string&, const std::string&) const;
template Option Verb::option(const std::string&, std::vector<std::string>&,
                             const std::string&) const;

Option Verb::flag(const std::string& names, bool& value, const std::string& text) const {
  return Option(*app_->add_flag(names, value, text));
}

void Verb::mention(const std::string& names, const std::string& value_name,
                   const std::string& text) const {
  if (value_name.empty()) {
    app_->add_flag(names, text);
  } else {
    app_->add_option(names, text)->type_name(value_name);
  }
}

void Verb::without_help_flag() const { app_->set_help_flag(); }

void Verb::footer(const std::string& text) const { app_->footer(text); }

void Verb::runs(std::function<void()> body) const { app_->callback(std::move(body)); }

std::string Verb::help() const { return app_->help(); }

std::string Verb::name() const { return app_->get_name(); }

std::vector<Verb> Verb::verbs() const {
  std::vector<Verb> found;
  for (CLI::App* verb : app_->get_subcommands([](CLI::App*) { return true; })) {
    found.push_back(Verb(*verb));
  }
  return found;
}

std::vector<Verb::Words> Verb::options() const {
  std::vector<Words> found;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    Words words;
    for (const std::string& name : option->get_lnames()) words.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.names.push_back("-" + name);
    words.choices = choices_of(*option);
    found.push_back(std::move(words));
  }
  return found;
}

CommandLine::CommandLine(const std::string& text, const std::string& program)
    : CommandLine(std::make_unique<CLI::App>(text, program)) {}

CommandLine::CommandLine(std::unique_ptr<CLI::App> app) : Verb(*app), owned_(std::move(app)) {}

CommandLine::~CommandLine() = default;

void CommandLine::version(const std::string& text) const {
  app_->set_version_flag("--version", text);
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& end) {  // CLI11 throws it for help too, then with exit status 0
    return app_->exit(end) == 0 ? kSuccess : kUsage;
  } catch (const UsageError& error) {
    app_->exit(CLI::ValidationError(error.what()));
    return kUsage;
  } catch (const ExitStatus& end) {
    return end.status();
  }
}

}  // namespace lockstep::launcher
