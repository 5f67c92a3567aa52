/** Front end of `display.widget.ReportWidget`. */

import { render } from "./render";

export default { render };
