-- SPDX-License-Identifier: MIT
-- /etc/slurm/job_submit.lua, where a site has none of its own.
dofile("/etc/slurm/gpreempt.lua")

function slurm_job_submit(job_desc, part_list, submit_uid)
	return gpreempt_job_submit(job_desc, part_list)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
	return slurm.SUCCESS
end
