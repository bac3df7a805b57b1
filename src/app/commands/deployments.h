// What each command deploys: its flags as the options of deploy().
#pragma once

#include "app/flags/flags.h"
#include "pipeline/deployment/deployment.h"

namespace braid {

// Each throws InputError. Where options leave files open, those that come with Braid are taken.
// Generate and serve also let weights go where a GPU has room for them; ranks are those that a
// launcher started.
// `say` hears which files were chosen, `warn` what is not followed, both in words of the options.
// Where there is no such argument, standard error is told.
Deployment deployed(const GenerateFlags& flags, const Request& request, const Warn& say = {},
                    const Warn& warn = {});
Deployment deployed(const ServeFlags& flags, const std::filesystem::path& model,
                    const Warn& warn = {});
Deployment deployed(const VerifyFlags& flags);
Deployment deployed(const BenchConfiguration& configuration);
Deployment deployed(const InfoFlags& flags);
Deployment deployed(const PlanFlags& flags);  // on its devices, which need not be here

// Says on standard error, on the first rank, which flags have no effect.
void warn_of(const std::vector<std::string>& unused);

}  // namespace braid
