// The commands. Each prints its result, returns the program's exit code and throws InputError or
// Error.
#pragma once

#include "app/flags/flags.h"
#include "app/print/phase_log.h"

namespace braid {

// Makes the pictures and prints their paths, or a report. Refuses before anything is loaded where
// that is possible.
int generate(const GenerateFlags& flags, PhaseLog::Clock::time_point program_began);
// Answers requests over HTTP until a signal asks it to stop: 0 when what was accepted is done.
int serve_pictures(const ServeFlags& flags);
// Prints what is known about a picture, or about this machine and, with a model, about that.
int info(const InfoFlags& flags);
// Whether a layout computes what one rank computes: 0 when it does, 1 when a block differs.
int verify_layout(const VerifyFlags& flags);
// What each layout of some devices would take: 0 when some layout fits, 1 when none does.
int plan(const PlanFlags& flags);
// How long a step takes.
int bench_transformer(const BenchFlags& flags);
// Prints the path of the new model.
int convert_model(const ConvertFlags& flags);

}  // namespace braid
