#include "app/flags/flag_groups.h"

#include "app/flags/flag_values.h"

namespace braid {

void add_guidance_flags(FlagReader& read, Request& r) {
  read.text("--negative-prompt", "TEXT", "Prompt",
            "What the picture should not show; on FLUX.1 it needs\n"
            "--true-cfg. Distilled models refuse it, or warn that they do\n"
            "not use it. Default: empty",
            into(r.negative_prompt, plain_text));
  read.text("--negative-prompt-2", "TEXT", "Prompt",
            "A separate negative prompt for the second text encoder",
            into(r.negative_prompt_2, plain_text));
  read.text("--true-cfg", "SCALE", "Prompt",
            "Scale of FLUX.1's classifier-free guidance against the\n"
            "negative prompt; values above 1 turn it on, and a step takes\n"
            "twice as long. Default: 1, off",
            into(r.true_cfg, finite_number));
  read.text("--guidance-rescale", "X", "Prompt",
            "0 to 1: how far the guided velocity is rescaled to the standard\n"
            "deviation of the unguided one. Default: 0, off",
            into(r.guidance_rescale, finite_number));
  read.text("--cfg-norm-cap", "X", "Prompt",
            "Cap the norm of the guided velocity at X times that of the\n"
            "unguided one. Default: 0, off",
            into(r.cfg_norm_cap, finite_number));
  read.text("--cfg-normalize", "WHEN", "Prompt",
            "on: each token of the guided velocity keeps the unguided one's\n"
            "length, as Qwen-Image always does; off: it does not.\n"
            "Default: the model's",
            [&](const std::string& flag, const std::string& text) {
              r.cfg_normalize = choice<bool>(flag, text, {{"on", true}, {"off", false}});
            });
  read.text("--cfg-until", "X", "Prompt",
            "0 to 1: the fraction of the way from noise to the picture after\n"
            "which true guidance is off. Default: 1",
            into(r.cfg_until, finite_number));
}

}  // namespace braid
