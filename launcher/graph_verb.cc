#include <fmt/core.h>

#include <filesystem>
#include <memory>

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

void run_graph(const GraphOptions& options) {
  const config::RunConfig config = load_config(options.files, options.overrides);
  const std::string dot = train::run_graph_dot(config, options.every_block);
  if (options.output.empty()) {
    fmt::print("{}", dot);
  } else if (const fs::path output = options.output; output.extension() == ".dot") {
    write_text(options.output, dot);
  } else {
    const std::string ending = output.extension().string();
    LS_CHECK(ending == ".svg" || ending == ".png" || ending == ".pdf", ConfigError,
             "[graph] {} has no ending that says what to write: expected FILE.svg, FILE.png, "
             "FILE.pdf or FILE.dot.",
             options.output);
    fs::path text = output;
    text += ".dot";
    write_text(text, dot);
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
  verb.runs([options] { run_graph(*options); });
}

}  // namespace lockstep::launcher
