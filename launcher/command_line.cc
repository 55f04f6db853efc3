#include "launcher/command_line.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/digits.h"
#include "core/base/nearest.h"
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

/// A validator that help shows as `bound` ("from 1 to 256"); `holds` tells whether it accepts a
/// value.
template <class T>
CLI::Validator within(const std::string& kind, const std::string& bound,
                      std::function<bool(T)> holds) {
  return CLI::Validator(
      [kind, bound, holds](std::string& text) {
        T value{};
        if (CLI::detail::lexical_cast(text, value) && holds(value)) return std::string();
        return fmt::format("expected {} {}, got {}", kind, bound, text);
      },
      bound);
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const auto meant = nearest(wanted, views);
  return meant ? fmt::format(" Did you mean {}?", *meant) : "";
}

/// Help with the bounds of values after a space: "--threads INT from 1 to 256".
class HelpText : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string type = option->get_type_name();
    if (const size_t at = text.find(type); !type.empty() && at != text.npos) {
      std::string spaced = type;
      std::ranges::replace(spaced, ':', ' ');
      text.replace(at, type.size(), spaced);
    }
    return text;
  }

  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_subcommands(app, mode);
    constexpr std::string_view kHeading = "\nSubcommands:";
    if (text.starts_with(kHeading)) text.replace(0, kHeading.size(), "\nVerbs:");
    return text;
  }
};

/// "bench step", or "lockstep" for the program itself.
std::string path_of(const CLI::App& verb) {
  const CLI::App* above = verb.get_parent();
  if (above == nullptr || above->get_parent() == nullptr) return verb.get_name();
  return path_of(*above) + " " + verb.get_name();
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

/// Long names, and short ones of options that have no other.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) names.push_back(option->get_name());
  }
  return names;
}

std::string wrong_option(const CLI::App& verb, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::string bare = name.substr(std::min(name.size(), name.find_first_not_of('-')));
  std::string hint = did_you_mean(name, option_names(verb));
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_positional() && option->get_name() == bare) {
      hint = fmt::format(" {} is given without a name, as in: {} {}.", bare, path_of(verb),
                         word.size() > name.size() ? word.substr(name.size() + 1) : "VALUE");
    }
  }
  for (const CLI::App* below : verb.get_subcommands([](const CLI::App*) { return true; })) {
    const std::vector<std::string> names = option_names(*below);
    if (hint.empty() && std::ranges::find(names, name) != names.end()) {
      hint = fmt::format(" {} has it: options stand after the verb.", path_of(*below));
    }
  }
  return fmt::format("{} has no option \"{}\".{} Its options: {}.", path_of(verb), name, hint,
                     fmt::join(option_names(verb), ", "));
}

/// What is wrong with the first word that no verb took, or with a missing verb; empty if it is
/// something else that is wrong.
std::string wrong_word(const CLI::App& app) {
  const std::vector<std::string> verbs = verb_names(app);
  const std::vector<std::string> left = app.remaining();
  if (!left.empty() && left[0].starts_with('-') && left[0] != "-") {
    return wrong_option(app, left[0]);
  }
  const std::string list = fmt::format("{}", fmt::join(verbs, ", "));
  if (!left.empty()) {
    if (!verbs.empty()) {
      return fmt::format("{} has no verb \"{}\".{} Its verbs: {}.", path_of(app), left[0],
                         did_you_mean(left[0], verbs), list);
    }
    return fmt::format("{} takes no further argument: got \"{}\".", path_of(app), left[0]);
  }
  for (const CLI::App* verb : app.get_subcommands()) {
    if (std::string problem = wrong_word(*verb); !problem.empty()) return problem;
  }
  if (app.get_require_subcommand_min() > app.get_subcommands().size()) {
    return fmt::format("{} needs a verb: one of {}.", path_of(app), list);
  }
  return "";
}

void collect_long_names(const CLI::App& app, std::set<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.insert("--" + name);
  }
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    collect_long_names(*verb, names);
  }
}

/// The words with options as they are named: underscores in place of dashes are accepted.
std::vector<std::string> with_dashes(const CLI::App& app, std::vector<std::string> words) {
  std::set<std::string> names;
  collect_long_names(app, names);
  for (std::string& word : words) {
    const size_t end = std::min(word.find('='), word.size());
    if (!word.starts_with("--") || names.contains(word.substr(0, end))) continue;
    std::string dashed = word;
    std::replace(dashed.begin(), dashed.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
    if (names.contains(dashed.substr(0, end))) word = std::move(dashed);
  }
  return words;
}

}  // namespace

Option Option::required(bool is_required) const {
  option_->required(is_required);
  return *this;
}

Option Option::positive() const {
  option_->check(within<double>("a number", "above 0", [](double value) { return value > 0; }));
  return *this;
}

Option Option::not_negative() const {
  option_->check(
      within<double>("a number", "of at least 0", [](double value) { return value >= 0; }));
  return *this;
}

Option Option::between(int64_t low, int64_t high) const {
  option_->check(
      within<int64_t>("an integer", fmt::format("from {} to {}", bound_text(low), bound_text(high)),
                      [low, high](int64_t value) { return low <= value && value <= high; }));
  return *this;
}

Option Option::one_of(const std::vector<std::string>& choices) const {
  option_->check(CLI::Validator(
      [choices](const std::string& text) {
        if (std::ranges::find(choices, text) != choices.end()) return std::string();
        return fmt::format("expected one of {}, got {}.{}", fmt::join(choices, ", "), text,
                           did_you_mean(text, choices));
      },
      fmt::format("{{{}}}", fmt::join(choices, ","))));
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

Option Option::value_is_optional() const {
  option_->expected(0, 1);
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

std::string Verb::text() const { return app_->get_description(); }

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
    words.text = option->get_description();
    words.takes_value = option->get_items_expected_max() > 0;
    found.push_back(std::move(words));
  }
  return found;
}

CommandLine::CommandLine(const std::string& text, const std::string& program)
    : CommandLine(std::make_unique<CLI::App>(text, program)) {}

CommandLine::CommandLine(std::unique_ptr<CLI::App> app) : Verb(*app), owned_(std::move(app)) {
  app_->formatter(std::make_shared<HelpText>());  // verbs that are added inherit it
  app_->get_formatter()->label("SUBCOMMAND", "VERB");
}

CommandLine::~CommandLine() = default;

void CommandLine::version(const std::string& text, std::function<std::string()> json) const {
  const std::string help = "With --version: more, as a JSON object";
  CLI::Option* const as_json = app_->add_flag("--json", help);
  CLI::Option* const version = app_->set_version_flag(
      "--version",
      [text, json = std::move(json), as_json] { return as_json->count() > 0 ? json() : text; },
      "Print the version and exit");
  as_json->needs(version);
}

void CommandLine::before_usage_error(std::function<void()> function) {
  before_usage_error_ = std::move(function);
}

int CommandLine::refuse(const std::string& problem) {
  if (before_usage_error_) before_usage_error_();
  app_->exit(CLI::ValidationError(problem));
  return kUsage;
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  try {
    std::vector<std::string> words = with_dashes(*app_, {argv + std::min(argc, 1), argv + argc});
    std::ranges::reverse(words);
    if (app_->get_name().empty()) app_->name(argv[0]);
    app_->parse(std::move(words));
    return std::nullopt;
  } catch (const CLI::ParseError& end) {  // CLI11 throws it for help too, then with exit status 0
    const bool is_word = dynamic_cast<const CLI::ExtrasError*>(&end) != nullptr ||
                         dynamic_cast<const CLI::RequiredError*>(&end) != nullptr;
    const std::string problem = is_word ? wrong_word(*app_) : "";
    if (!problem.empty()) return refuse(problem);
    if (end.get_exit_code() != 0 && before_usage_error_) before_usage_error_();
    return app_->exit(end) == 0 ? kSuccess : kUsage;
  } catch (const UsageError& error) {
    return refuse(error.what());
  } catch (const ExitStatus& end) {
    return end.status();
  }
}

}  // namespace lockstep::launcher
