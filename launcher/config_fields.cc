#include "launcher/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "configs/field_docs.h"
#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "train/report/progress.h"

namespace lockstep::launcher {

namespace {

struct FieldsOptions {
  std::string path;
  std::vector<std::string> words;
};

/// "train.steps: integer from 1 to 10^12, in steps; required".
std::string headline(const config::FieldDoc& doc) {
  std::string text = doc.path + ": " + doc.type;
  if (!doc.range.empty()) text += (doc.range.starts_with("from") ? " " : ", ") + doc.range;
  if (!doc.unit.empty()) text += ", in " + doc.unit;
  if (doc.fallback.empty()) return text;
  const bool is_value = doc.type != "{ ... }" && doc.fallback != "required" &&
                        doc.fallback != "depends on other fields";
  return text + (is_value ? "; default " : "; ") + doc.fallback;
}

/// Breaks `text` at spaces into lines of at most `columns`, each after `indent`.
std::string wrapped(std::string_view text, size_t columns, std::string_view indent) {
  std::string lines;
  size_t width = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (width == 0 || width + 1 + word.size() > columns) {
      lines += fmt::format("{}{}{}", width == 0 ? "" : "\n", indent, word);
      width = indent.size() + word.size();
    } else {
      lines += fmt::format(" {}", word);
      width += 1 + word.size();
    }
  }
  return lines;
}

void print_fields(const FieldsOptions& options) {
  const std::vector<config::FieldDoc> found = config::find_field_docs(options.path, options.words);
  const auto columns =
      static_cast<size_t>(std::clamp(train::ProgressStyle::of(stdout).columns, 40, 100));
  for (const config::FieldDoc& doc : found) {
    fmt::print("{}\n{}\n", wrapped(headline(doc), columns, ""),
               wrapped(doc.comment, columns, "    "));
  }
  if (!found.empty()) return;
  fmt::print("no field{} speaks of {}\n", options.path.empty() ? "" : " below " + options.path,
             fmt::join(options.words, " and "));
  throw ExitStatus(kFailure);
}

}  // namespace

void add_config_fields(const Verb& parent) {
  auto options = std::make_shared<FieldsOptions>();
  const Verb verb =
      parent.verb("fields", "Fields of a config: type, range, unit, default and meaning of each");
  verb.option("path", options->path, "Only this field and those in it, as train or train.steps");
  verb.option("--search", options->words, "Only fields whose path or meaning has this word")
      .one_value_each();
  verb.runs([options] { print_fields(*options); });
}

}  // namespace lockstep::launcher
