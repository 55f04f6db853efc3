#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds the subcommand `convert SOURCE DESTINATION --to hf|gguf|llmc` to `parent`: converts
/// models of Hugging Face and llm.c, and runs, to the formats of both and to GGUF.
void add_checkpoint_convert(const Verb& parent);

}  // namespace lockstep::launcher
