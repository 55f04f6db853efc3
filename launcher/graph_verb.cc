#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compile/graph/graph_export.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/picture.h"
#include "launcher/verbs.h"
#include "train/run/run_graph.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

struct GraphOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::string output;
  bool every_block = false;
  bool compiled = false;
};

/// Runs Graphviz's `dot` program to draw `dot` into `picture`.
void draw(const fs::path& dot, const fs::path& picture) {
  const std::string format = "-T" + picture.extension().string().substr(1);
  const std::string to = picture.string();
  const int status = run_tool({"dot", format, "-o", to, dot.string()});
  constexpr int kNotFound = 127;  // where the child has to look for the program
  LS_CHECK(status != -1 && status != kNotFound, ConfigError,
           "[graph] Graphviz's program \"dot\", which draws {}, does not start: expected it on "
           "PATH. Install the package graphviz, or write a .dot file with -o FILE.dot.",
           to);
  LS_CHECK(status == 0, DataError,
           "[graph] Graphviz's program \"dot\" could not draw {}: expected a folder that can be "
           "written to and a format that it knows (svg, png, pdf).",
           to);
}

std::string text_of(const std::vector<compiler::NamedGraph>& graphs) {
  std::string text;
  for (const compiler::NamedGraph& each : graphs) {
    text += fmt::format("{}# {}\n{}", text.empty() ? "" : "\n", each.name, to_string(each.graph));
  }
  return text;
}

void run_graph(const GraphOptions& options) {
  const config::RunConfig config = load_config(options.files, options.overrides);
  std::vector<compiler::NamedGraph> graphs;
  if (options.compiled) graphs = train::compiled_graphs(config);
  const auto dot_of = [&] {
    return options.compiled ? to_dot(graphs) : train::run_graph_dot(config, options.every_block);
  };
  const fs::path output = options.output;
  if (options.output.empty()) {
    fmt::print("{}", options.compiled ? text_of(graphs) : dot_of());
  } else if (options.compiled && output.extension() == ".json") {
    write_text(output, to_json(graphs));
  } else if (output.extension() == ".dot") {
    write_text(output, dot_of());
  } else {
    const std::string ending = output.extension().string();
    LS_CHECK(ending == ".svg" || ending == ".png" || ending == ".pdf", ConfigError,
             "[graph] {} has no ending that says what to write: expected FILE.svg, FILE.png, "
             "FILE.pdf or FILE.dot, or with --compiled FILE.json.",
             options.output);
    fs::path text = output;
    text += ".dot";
    write_text(text, dot_of());
    draw(text, output);
    fs::remove(text);
  }
}

}  // namespace

void add_graph(const Verb& app) {
  auto options = std::make_shared<GraphOptions>();
  const Verb verb = app.verb(
      "graph",
      "What a run's loss records for backward, as a picture: nodes, the tensors that they keep, "
      "parameters by name. Reads neither data nor weights");
  add_config_options(verb, options->files, options->overrides, "model.gpt2.layers=1");
  verb.option("-o,--output", options->output,
              "FILE.svg, .png or .pdf, drawn by Graphviz's dot, or FILE.dot. Without it the "
              "DOT text is printed");
  verb.flag("--every-block", options->every_block,
            "Draw all of equal blocks in a row, of which else the first and the last are drawn. "
            "Dot needs minutes for hundreds of layers");
  verb.flag("--compiled", options->compiled,
            "The graphs of the model's blocks as they are compiled, forward and backward, as text; "
            "with -o also FILE.json. Computes a micro-batch on the cpu");
  verb.runs([options] { run_graph(*options); });
}

}  // namespace lockstep::launcher
