/** Front end of `display.widget.LinkWidget`: never displayed, it links a report's HTML to the kernel. */

import { registerLink } from "./local_model";
import type { Model } from "./types";

function initialize({ model }: { model: Model }): () => void {
  return registerLink(model.get("report_id"), model);
}

export default { initialize };
