#include "train/page/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/check.h"
#include "core/base/content_hash.h"
#include "core/base/digits.h"
#include "core/base/files/atomic_file.h"
#include "train/page/assets.h"
#include "train/page/curves.h"
#include "train/page/html.h"
#include "train/page/page_sections.h"
#include "train/report/run_directory.h"

namespace lockstep::train {
namespace {

using html::escaped;

std::string title_of(std::span<const RunRecord> runs) {
  std::string title = runs.size() == 1 ? "Run " : "Runs ";
  for (size_t i = 0; i < runs.size(); ++i) {
    title += (i == 0 ? "" : i + 1 == runs.size() ? " and " : ", ") + runs[i].name;
  }
  return title;
}

struct Section {
  const char* id;
  const char* title;
  std::string content;  ///< empty: the page has no such section
};

std::string licence_section() {
  if (page_assets::plot_license().empty()) return "";
  return fmt::format(
      "<details><summary>Licence of dygraphs, which draws the curves</summary><pre>{}</pre>"
      "</details>\n",
      escaped(page_assets::plot_license()));
}

/// Without the last line's reference to a file that browsers' tools would look for.
std::string_view without_source_map(std::string_view text) {
  constexpr std::string_view kMap = "# sourceMappingURL=";
  const size_t map = text.rfind(kMap);
  return map == text.npos ? text : text.substr(0, map - 2);  // with the comment's "//" or "/*"
}

/// Lets the browser run the page's own programs and nothing else: those that bear this number,
/// which text of a run cannot know as it depends on all of the page.
std::string nonce_of(std::string_view page) { return ContentHasher().add(page).result().hex(); }

}  // namespace

std::string run_page(std::span<const RunRecord> runs) {
  const std::string title = title_of(runs);
  const std::vector<Section> sections = {
      {"missing", "What is missing", page::missing_section(runs)},
      {"summary", "Summary", page::summary_section(runs)},
      {"curves", "Curves", page::curves_section(runs)},
      {"events", "Events", page::events_section(runs)},
      {"samples", "Samples", page::samples_section(runs)},
      {"config", "Configuration", page::config_section(runs)},
      {"ranks", "Ranks", page::ranks_section(runs)},
      {"overlap", "Communication", page::overlap_section(runs)},
      {"machine", "Machine and libraries", page::machine_section(runs)},
      {"repeat", "Commands to repeat", page::repeat_section(runs)},
  };
  std::string contents, body;
  for (const Section& section : sections) {
    if (section.content.empty()) continue;
    contents += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id, section.title);
    body += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">"
        "{1}</h2>\n{2}</section>\n",
        section.id, section.title, section.content);
  }
  const std::string data = html::script_json(curves_json(runs));
  const std::string nonce = nonce_of(title + body + data);
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
      "style-src 'unsafe-inline'; script-src 'nonce-{}'\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n",
      nonce, escaped(title));
  text.append("<style>\n").append(without_source_map(page_assets::plot_style()));
  text.append(page_assets::style()).append("</style>\n</head>\n<body>\n");
  text += fmt::format(
      "<a class=\"skip\" href=\"#summary\">Skip to the summary</a>\n<header>\n<h1>{}</h1>\n"
      "<button type=\"button\" id=\"theme\" hidden>Dark</button>\n<nav "
      "aria-label=\"Sections\"><ul>\n"
      "{}</ul></nav>\n</header>\n<main>\n{}</main>\n<footer>\n<p>Written by Lockstep {}.</p>\n{}"
      "</footer>\n",
      escaped(title), contents, body, LOCKSTEP_VERSION, licence_section());
  text += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n", data);
  for (const std::string_view program :
       {without_source_map(page_assets::plot_program()), page_assets::program()}) {
    if (program.empty()) continue;
    text += fmt::format("<script nonce=\"{}\">\n", nonce);
    text.append(program).append("</script>\n");
  }
  return text + "</body>\n</html>\n";
}

RunRecordOptions page_options(size_t runs) {
  RunRecordOptions options;
  // About 7 bytes a point, and 12 curves: 1.4 MB for one run, and below 3 for any number up to 100.
  options.points = std::max<size_t>(256, (size_t{1} << 14) * 2 / std::max<size_t>(runs + 1, 2));
  options.samples = std::max<size_t>(2, options.samples / runs);
  options.sample_bytes /= runs;
  options.events /= std::max<size_t>(1, runs);
  return options;
}

void write_run_page(const std::filesystem::path& directory, uint64_t most_metrics) {
  const RunDirectory run_directory = RunDirectory::open(directory);
  std::error_code failed;
  const uintmax_t bytes = std::filesystem::file_size(run_directory.metrics(), failed);
  LS_CHECK(failed || bytes <= most_metrics, DataError,
           "[report] {} has {} bytes, too many to be read at a run's end. `lockstep report {}` "
           "writes its page.",
           run_directory.metrics().string(), bytes, directory.string());
  const RunRecord run = read_run(directory, page_options(1));
  write_text(run_directory.report(), run_page({&run, 1}));
}

}  // namespace lockstep::train
