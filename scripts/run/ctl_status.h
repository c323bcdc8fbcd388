/* `profrun ctl PID status` in plain words. */
#ifndef RUN_CTL_STATUS_H
#define RUN_CTL_STATUS_H

/* ctl_status_take - keep what a line of the process's answer says */
void ctl_status_take(const char *line);

/*
 * ctl_status_print - print what the lines said
 *
 * @report is shim-report, which adds up the recording.
 */
void ctl_status_print(const char *process, const char *report);

/* ctl_status_json - the same as an object */
void ctl_status_json(const char *process, const char *report);

#endif
