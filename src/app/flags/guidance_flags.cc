#include "app/flags/flag_groups.h"

#include "app/flags/flag_values.h"

namespace braid {

void add_guidance_flags(FlagReader& read, Request& r) {
  read.text("--negative-prompt", "TEXT", "Prompt",
            "What the picture should not show; FLUX.1 uses it with\n"
            "--true-cfg, distilled models have none. Default: empty",
            into(r.negative_prompt, plain_text));
  read.text("--negative-prompt-2", "TEXT", "Prompt",
            "Another negative text for the second text encoder",
            into(r.negative_prompt_2, plain_text));
  read.text("--true-cfg", "SCALE", "Prompt",
            "Strength of FLUX.1's classifier-free guidance against the\n"
            "negative prompt; above 1 it runs, and a step takes twice as\n"
            "long. Default: 1, off",
            into(r.true_cfg, finite_number));
  read.text("--guidance-rescale", "X", "Prompt",
            "0 to 1: how far true guidance is brought back to the spread\n"
            "of the unguided velocity. Default: 0, off",
            into(r.guidance_rescale, finite_number));
  read.text("--cfg-norm-cap", "X", "Prompt",
            "Keeps the guided velocity at most X times as long as the\n"
            "unguided one. Default: 0, off",
            into(r.cfg_norm_cap, finite_number));
  read.text("--cfg-until", "X", "Prompt",
            "0 to 1: the part of the way from noise to the picture behind\n"
            "which true guidance is off. Default: 1",
            into(r.cfg_until, finite_number));
}

}  // namespace braid
