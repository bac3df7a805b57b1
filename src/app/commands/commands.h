// The commands. Each prints its result, returns the program's exit code and throws InputError or
// Error.
#pragma once

#include "app/flags/flags.h"
#include "pipeline/engine/phase_log.h"

namespace braid {

// Makes the pictures and prints their paths, or a report. Refuses before loading where possible.
int generate(const GenerateFlags& flags, PhaseLog::Clock::time_point program_began);
// Answers requests over HTTP until a signal asks it to stop; returns 0 once accepted requests are
// done.
int serve_pictures(const ServeFlags& flags);
// Prints what is known about a picture, or about this machine and, if given, a model.
int info(const InfoFlags& flags);
// Checks that a layout computes what one rank computes: 0 if so, 1 if a block differs.
int verify_layout(const VerifyFlags& flags);
// The cost of each layout of some devices: 0 if some layout fits, 1 if none does.
int plan(const PlanFlags& flags);
// Measures how long a step takes.
int bench_transformer(const BenchFlags& flags);
// Prints the path of the new model.
int convert_model(const ConvertFlags& flags);

// Loads a repository's files from the hub and prints where they are.
int pull_model(const PullFlags& flags);
// Lists the models of Hugging Face's cache, of ComfyUI's folders, and those that come with Braid.
int list_models(const ModelsFlags& flags);

}  // namespace braid
