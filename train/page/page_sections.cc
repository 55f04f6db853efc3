#include "train/page/page_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/digits.h"
#include "core/base/shell_text.h"
#include "train/page/assets.h"
#include "train/page/curves.h"
#include "train/page/html.h"
#include "train/report/step_line.h"

namespace lockstep::train::page {
namespace {

using html::escaped;
using Facts = std::vector<std::pair<std::string, std::string>>;

/// A heading that names the run, where there are several.
std::string heading(std::span<const RunRecord> runs, const RunRecord& run) {
  return runs.size() == 1 ? "" : fmt::format("<h3>{}</h3>\n", escaped(run.name));
}

std::string details(const std::string& summary, const std::string& content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(summary), content);
}

std::vector<std::string> head_of(std::string first, std::span<const RunRecord> runs) {
  std::vector<std::string> head = {std::move(first)};
  for (const RunRecord& run : runs) head.push_back(run.name);
  return head;
}

/// A row for each name of the runs' facts, in the order in which they come up, with a cell for each
/// run. With `differing` only those of which not all cells are the same.
std::string side_by_side(std::span<const RunRecord> runs, const std::string& caption,
                         const std::vector<Facts>& facts, bool differing) {
  html::Table table{.caption = caption, .head = head_of("Name", runs), .rows = {}};
  std::map<std::string, size_t> row_of;
  for (size_t run = 0; run < facts.size(); ++run) {
    for (const auto& [name, value] : facts[run]) {
      const auto [found, is_new] = row_of.emplace(name, table.rows.size());
      if (is_new) {
        table.rows.emplace_back(runs.size() + 1, "not set")[0] = name;
      }
      table.rows[found->second][run + 1] = value;
    }
  }
  if (differing) {
    std::erase_if(table.rows, [](const std::vector<std::string>& row) {
      return std::all_of(row.begin() + 1, row.end(),
                         [&](const std::string& cell) { return cell == row[1]; });
    });
    if (table.rows.empty()) return "<p>Nothing differs between the runs.</p>\n";
  }
  return html::table(table);
}

std::string config_table(const RunRecord& run, const std::string& caption, bool with_defaults) {
  html::Table table{.caption = caption, .head = {"Field", "Value", "Origin"}, .rows = {}};
  for (const ConfigValue& value : run.config) {
    if (!with_defaults && value.origin == "default") continue;
    table.rows.push_back(
        {value.path, value.value, value.origin.empty() ? "not known" : value.origin});
  }
  return table.rows.empty() ? "" : html::table(table);
}

std::optional<double> goodput_of(const RunRecord& run, const char* name) {
  const auto found = run.goodput.find(name);
  return found == run.goodput.end() ? std::nullopt : std::optional(found->second);
}

std::string fact_of(const RunRecord& run, const char* name) {
  for (const auto& [key, value] : run.environment) {
    if (key == name) return value;
  }
  return "";
}

Facts summary_of(const RunRecord& run) {
  Facts facts;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) facts.emplace_back(name, std::move(value));
  };
  add("Started", fact_of(run, "start_time"));
  add("Steps", grouped(run.steps));
  add("Ended", run.ended.empty() ? "not told: it goes on, or was cut short" : run.ended);
  if (run.ranks > 1) add("Ranks", std::to_string(run.ranks));
  constexpr double kMostTokens = 1e18;  // more is no count that a run comes to
  const double tokens = run.tokens_per_step * static_cast<double>(run.steps);
  if (tokens > 0 && tokens < kMostTokens) add("Tokens", grouped(static_cast<int64_t>(tokens)));
  if (const StepSeries* loss = run.find("loss")) {
    add("Last training loss", format_loss(loss->last().value));
  }
  if (const StepSeries* loss = run.find("val_loss")) {
    add("Best held-out loss", fmt::format("{} (step {})", format_loss(loss->smallest().value),
                                          grouped(loss->smallest().step)));
    add("Last held-out loss", format_loss(loss->last().value));
  }
  if (const StepSeries* bits = run.find("val_bits_per_byte")) {
    add("Last bits per byte", fmt::format("{:.4f}", bits->last().value));
  }
  if (const auto wall = goodput_of(run, "wall_s")) add("Wall time", format_duration(*wall));
  if (const auto goodput = goodput_of(run, "goodput")) {
    add("Goodput", fmt::format("{:.1f} % of the wall time in steps that count", 100 * *goodput));
  }
  if (const auto starts = goodput_of(run, "starts")) {
    add("Starts", fmt::format("{:.0f}, {:.0f} of them after a failure", *starts,
                              goodput_of(run, "restarts").value_or(0)));
  }
  add("Lockstep", fact_of(run, "version") + (fact_of(run, "commit").empty() ? "" : ", commit ") +
                      fact_of(run, "commit").substr(0, 12));
  add("Directory", run.path.string());
  return facts;
}

std::string joined(std::span<const RunRecord> runs,
                   const std::function<std::string(const RunRecord&)>& part) {
  std::string text;
  for (const RunRecord& run : runs) {
    const std::string content = part(run);
    if (!content.empty()) text += heading(runs, run) + content;
  }
  return text;
}

}  // namespace

std::string missing_section(std::span<const RunRecord> runs) {
  return joined(runs, [](const RunRecord& run) {
    std::string items;
    for (const std::string& problem : run.missing) {
      items += fmt::format("<li>{}</li>\n", escaped(problem));
    }
    return items.empty() ? "" : "<ul>\n" + items + "</ul>\n";
  });
}

std::string summary_section(std::span<const RunRecord> runs) {
  std::vector<Facts> facts;
  std::ranges::transform(runs, std::back_inserter(facts), summary_of);
  return side_by_side(runs, "What the runs came to", facts, false);
}

std::string curves_section(std::span<const RunRecord> runs) {
  std::string text;
  if (page_assets::plot_program().empty()) {
    text =
        "<p role=\"status\">The curves are missing: this Lockstep was built without the plotting "
        "library dygraphs. Install the package libjs-dygraphs and build it again.</p>\n";
  } else {
    text =
        "<noscript><p>Curves need a browser that runs scripts. The table below has their first, "
        "smallest, largest and last values.</p></noscript>\n"
        "<div id=\"controls\" hidden></div>\n<div id=\"charts\"></div>\n"
        "<p id=\"problem\" role=\"alert\"></p>\n";
  }
  return text + extremes_table(runs);
}

std::string events_section(std::span<const RunRecord> runs) {
  return joined(runs, [](const RunRecord& run) -> std::string {
    if (run.events.empty()) return "";
    html::Table table{
        .caption = "What happened, by step", .head = {"Step", "Event", "More"}, .rows = {}};
    for (const RunEvent& event : run.events) {
      table.rows.push_back({grouped(event.step), event.kind, event.text});
    }
    std::string text = html::table(table);
    if (run.events_left_out > 0) {
      text += fmt::format("<p>{} more are left out.</p>\n", grouped(run.events_left_out));
    }
    return text;
  });
}

std::string samples_section(std::span<const RunRecord> runs) {
  return joined(runs, [](const RunRecord& run) {
    std::string text;
    for (auto sample = run.samples.rbegin(); sample != run.samples.rend(); ++sample) {
      text += fmt::format("<details{}><summary>After step {}</summary>\n<pre>{}</pre></details>\n",
                          sample == run.samples.rbegin() ? " open" : "", grouped(sample->step),
                          escaped(sample->text));
    }
    if (run.samples_left_out > 0) {
      text += fmt::format("<p>{} more are in samples.jsonl.</p>\n", grouped(run.samples_left_out));
    }
    return text;
  });
}

std::string config_section(std::span<const RunRecord> runs) {
  std::string text;
  if (runs.size() > 1) {
    std::vector<Facts> facts;
    for (const RunRecord& run : runs) {
      Facts& values = facts.emplace_back();
      for (const ConfigValue& value : run.config) values.emplace_back(value.path, value.value);
    }
    text = side_by_side(runs, "Values that differ", facts, true);
  }
  text += joined(runs, [&](const RunRecord& run) -> std::string {
    if (run.config.empty()) return "";
    const std::string all = details(fmt::format("All {} values", run.config.size()),
                                    config_table(run, "All values, with their origins", true));
    return (runs.size() == 1 ? config_table(run, "Values that were set", false) : "") + all;
  });
  return text;
}

std::string ranks_section(std::span<const RunRecord> runs) {
  return joined(runs, [](const RunRecord& run) -> std::string {
    if (!run.rank_times || run.rank_times->ranks.size() < 2) return "";
    const SlowestRank slowest = slowest_of(*run.rank_times);
    html::Table table{
        .caption = fmt::format("Milliseconds of a step, mean of {} steps", run.rank_times->steps),
        .head = {"Rank", "Computes", "of that others had its core", "Waits for data",
                 "Waits for other ranks", "Slowest by"},
        .rows = {}};
    const auto ms = [](double value) {
      return value < 0 ? std::string("not known") : fmt::format("{:.1f}", value);
    };
    for (const RankTimes& each : run.rank_times->ranks) {
      const bool is_slowest = each.rank == slowest.rank && slowest.reason != SlowReason::kNone;
      table.rows.push_back({std::to_string(each.rank), ms(each.compute_ms), ms(each.core_ms),
                            ms(each.data_ms), ms(each.exposed_ms),
                            is_slowest ? name(slowest.reason) : ""});
    }
    std::string text = fmt::format("<p>In the newest comparison {}.</p>\n",
                                   escaped(slowest_text(*run.rank_times)));
    if (!run.rank_leaves.empty()) {
      text += fmt::format("<p>Of the leaves of a step the ranks compute {}.</p>\n",
                          fmt::join(run.rank_leaves, ", "));
    }
    return text + html::table(table);
  });
}

std::string overlap_section(std::span<const RunRecord> runs) {
  return joined(runs, [](const RunRecord& run) -> std::string {
    const RecordedOverlap& overlap = run.overlap;
    if (overlap.facts.empty() && overlap.buckets.empty()) return "";
    std::string text;
    if (!overlap.picture.empty()) {
      // As a picture, not as part of the page: no script in it runs.
      text += fmt::format(
          "<img class=\"picture\" alt=\"Backward and the transfers of its buckets over a median "
          "step; the table has the numbers\" src=\"data:image/svg+xml;base64,{}\">\n",
          html::base64(overlap.picture));
    }
    if (!overlap.buckets.empty()) {
      text += html::table({.caption = "Buckets of gradients in the median step",
                           .head = {std::begin(kOverlapHead), std::end(kOverlapHead)},
                           .rows = overlap.buckets});
    }
    html::Table facts{.caption = "The step", .head = {"Name", "Value"}, .rows = {}};
    for (const auto& [name, value] : overlap.facts) facts.rows.push_back({name, value});
    return text + html::table(facts);
  });
}

std::string machine_section(std::span<const RunRecord> runs) {
  std::vector<Facts> facts;
  for (const RunRecord& run : runs) facts.push_back(run.environment);
  if (std::ranges::all_of(facts, &Facts::empty)) return "";
  const std::string all = side_by_side(runs, "Machine, program and libraries", facts, false);
  if (runs.size() == 1) return all;
  return side_by_side(runs, "What differs", facts, true) + details("Everything", all);
}

std::string repeat_section(std::span<const RunRecord> runs) {
  return joined(runs, [](const RunRecord& run) -> std::string {
    if (run.command_line.empty()) return "";
    std::string text = fmt::format("<p>As {} started:</p>\n<pre>",
                                   run.ranks > 1 ? "each of its ranks was" : "it was");
    if (!run.working_directory.empty()) {
      text += escaped("cd " + shell_text({run.working_directory})) + "\n";
    }
    text += escaped(shell_text(run.command_line)) + "</pre>\n";
    std::vector<std::string> again = {"lockstep", "train"};
    if (run.ranks > 1) again = {"lockstep", "launch", "-np", std::to_string(run.ranks)};
    again.push_back((run.path / "config.txtpb").string());
    return text +
           fmt::format("<p>From its config, for the same weights bit for bit:</p>\n<pre>{}</pre>\n",
                       escaped(shell_text(again)));
  });
}

}  // namespace lockstep::train::page
